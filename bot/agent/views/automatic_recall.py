"""Recall that nobody asked for: what the tape, the facts and the notes say on the newest message.

Rule 1: it is for a message that asks, or speaks of the past; models that live on it get it for any that says something.
Rule 2: people's own words are recalled; the assistant's only where they are asked for.
Rule 3: few passages, and none that fits much worse than the best: the bounds were fitted by ``tapebot eval recall``.
Rule 4: it costs nothing where the model sees all there is: nothing was said before the view, and no fact and no
    line of memory is missing in the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from bot.core.clock import Clock
from bot.llm.base import estimate_tokens
from bot.memory.conversation_entries import replaced_entry_id
from bot.memory.memory_validation import memory_lines
from bot.memory.recall import RecallableFact, RecalledPassage, recall_passages
from bot.memory.session_fold import SessionFold
from bot.memory.stemming import stemmed_words
from bot.memory.vector_index import VectorIndex
from bot.memory.zone import MemoryZone
from bot.memory.zone_snapshot import MemorySnapshot
from bot.tape.search import problem_of
from bot.tape.service import TapeService

MOST_PASSAGES = 3
CANDIDATES = 12
MIN_SCORE = 0.2
"""Share of the question's words that a passage must have, by weight."""
_OF_BEST = 0.5
MIN_RECALL_BUDGET = 600
"""For builders and models that live on it, where no more is set."""

_LOOKED_BACK = 200
"""Entries before the view among which something that was said is looked for."""

UNLIMITED_DAYS = 3_650
_ASKS = re.compile(
    r"[?？؟]|^\W*(?:who|whom|whose|what|when|where|which|why|how|do|does|did|is|are|was|were|can|could|have|has|tell me|show me|list|find"
    r"|wer|wem|wen|was|wann|wo|woher|wohin|welche\w?|warum|wie|wieviel\w?|hast|habe|weisst|weißt|kannst|zeig\w?|nenn\w?"
    r"|qui|que|quoi|quand|ou|où|quel\w{0,3}|pourquoi|comment|combien|est-ce|quien|quién|qué|cuando|cuándo|donde|dónde|cual|cuál|como|cómo|cuanto|cuánto"
    r"|chi|che|cosa|quando|dove|quale|quali|perche|perché|come|quanto|quem|o que|onde|qual|quais|quanto"
    r"|кто|что|когда|где|куда|какой|какая|какие|почему|как|сколько|чей)\b|吗|呢|什么|哪|谁|多少|几|怎么|か。?$|なに|何|いつ|どこ|だれ|誰",
    re.IGNORECASE,
)
_LOOKS_BACK = re.compile(
    r"\b(?:remember|recall|last time|last (?:week|month|year)|earlier|before|again|as usual|the usual|same as|we (?:talked|spoke|discussed|agreed|decided)"
    r"|i (?:told|said|mentioned)|you (?:said|told|suggested|recommended|wrote|gave)|previous\w{0,2}|still"
    r"|erinner\w{0,3}|letztes? mal|neulich|damals|vorhin|wieder|wie immer|besprochen|gesagt|erwähnt|vorgeschlagen|empfohlen"
    r"|souviens|rappelle|la dernière fois|dernièrement|encore|comme d'habitude|dit|parlé|recuerda\w?|la última vez|otra vez|como siempre|dijiste|dije|hablamos"
    r"|ricord\w{1,2}|l'ultima volta|di nuovo|come sempre|detto|lembra\w?|da última vez|de novo|como sempre|disse|помни\w{1,3}|в прошлый раз|снова|опять|как обычно|говорил\w?)\b"
    r"|记得|上次|之前|以前|覚えて|前回|この前",
    re.IGNORECASE,
)
_ASKS_ASSISTANT = re.compile(
    r"\b(?:you|u) (?:ever |just |have |had |'ve )?(?:said|told|suggested?|recommend\w{0,4}|wrote|gave|listed|explained|calculated|answered|mentioned|proposed)"
    r"|\b(?:did|have|do) you (?:ever )?(?:say|tell|suggest|recommend|write|give|list|explain|calculate|answer|mention|propose)"
    r"|\byour (?:answer|list|advice|suggestion|recommendation|recipe|plan)"
    r"|\b(?:hast|hattest) du|\bdein\w{0,2} (?:vorschlag|antwort|liste|rat|empfehlung)|\btu (?:as|avais)|\b(?:dijiste|sugeriste|recomendaste|hai detto|hai consigliato|você disse|ты (?:сказал|советовал))"
    r"|你(?:说|建议|推荐)|(?:あなた|君)(?:が|は)(?:言|勧)",
    re.IGNORECASE,
)
_WORDS = re.compile(r"\w+")
_EMPTY = frozenset(
    "ok okay k yes yeah yep yup no nope nah thanks thank thx ty please hi hello hey bye goodbye cool "
    "great good nice fine perfect sure right exactly lol haha hm hmm go on stop continue more next "
    "again done well oh wow morning night evening ja nein danke bitte hallo moin gut genau weiter "
    "oui non merci bonjour salut si sí sì gracias hola vale grazie ciao obrigado não да нет спасибо "
    "привет ладно 好 好的 谢谢 你好 嗯 はい いいえ ありがとう こんにちは 네 아니요 감사합니다 안녕".split()
)


@dataclass(slots=True)
class AutomaticRecall:
    """What was recalled for the newest message: looked up once, the same for all steps of a turn.

    Attributes:
        message_id: Id of that message.
        lines: What is in the tail for it.
        earlier_check: Where the view began when it was last looked at, of which problem, and whether anything
            was said of that before.
    """

    message_id: int = 0
    lines: list[str] = field(default_factory=list)
    earlier_check: tuple[int, str, bool] = (0, "", False)

    async def read(
        self,
        tape: TapeService,
        fold: SessionFold,
        zone: MemoryZone,
        clock: Clock,
        prompt: str,
        *,
        room: int,
        lives_on_it: bool,
        facts: Callable[[], Sequence[RecallableFact]],
        vectors: VectorIndex | None = None,
    ) -> list[str]:
        """Return the records for the newest message; empty where nothing fits it.

        Of the tape they hold only what belongs to the problem that is worked on.

        Args:
            tape: The session's.
            fold: Its state: what is in view is not recalled.
            zone: Its memory.
            clock: Tells the time.
            prompt: The system prompt: what it says is not recalled.
            room: Tokens that they may take.
            lives_on_it: The model looks nothing up itself.
            facts: Gives those of the scopes that the session may read.
            vectors: Of the tapes; None finds by words alone.
        """
        spoken = fold.window.conversation()
        newest = next((e for e in reversed(spoken) if e.payload.get("role") == "user"), None)
        if newest is None:
            return []
        if newest.id != self.message_id:
            words = str(newest.payload.get("content", ""))
            found: list[RecalledPassage] = []
            told, known = _prompt_and_tail(fold, prompt), facts()
            wanted = not has_no_search_words(words) and (lives_on_it or asks_about_past(words))
            if wanted and (
                _has_memory_outside_prompt(fold, told, known) or await self._said_before(tape, fold)
            ):
                found = await recall_passages(
                    tape,
                    _memory_outside_prompt(zone.read(), told),
                    words,
                    days=UNLIMITED_DAYS,
                    now=clock.now(),
                    timezone=zone.timezone,
                    limit=CANDIDATES,
                    before=fold.window.first_id,
                    facts=[fact for fact in known if fact.text not in told],
                    vectors=vectors,
                    problem=fold.search_problem,
                )
            # What an edit stands in the place of is not told beside it.
            shown = {one for entry in spoken for one in (entry.id, replaced_entry_id(entry)) if one}
            seen = shown | set(fold.window.queued)
            left = [one for one in found if one.entry not in seen]
            self.lines = _chosen(select_passages(left, words), told, room)
            self.message_id = newest.id
        return self.lines

    async def _said_before(self, tape: TapeService, fold: SessionFold) -> bool:
        """Say whether anything was said of the problem before the view; looked up once for each cut."""
        cut, problem = fold.window.first_id, fold.problem
        if self.earlier_check[:2] != (cut, problem):
            self.earlier_check = (cut, problem, await _says_something(tape, cut, problem))
        return self.earlier_check[2]


async def _says_something(tape: TapeService, before: int, problem: str) -> bool:
    """Say whether a message of a problem stands before this id; where none is near, it may."""
    async with aclosing(tape.read_back(before)) as entries:
        async for entry in entries:
            own = entry.kind == "message" and problem_of(entry) == problem
            if own or entry.id < before - _LOOKED_BACK:
                return True
    return False


def has_no_search_words(text: str) -> bool:
    """Say whether a message gives nothing to look for: no words of its own, or one or two empty."""
    words = _WORDS.findall(text.lower())
    return not stemmed_words(text) or (len(words) <= 2 and _EMPTY.issuperset(words))


def asks_about_past(text: str) -> bool:
    """Say whether a message asks something, or speaks of what was before."""
    return _ASKS.search(text) is not None or _LOOKS_BACK.search(text) is not None


def select_passages(found: Sequence[RecalledPassage], asked: str) -> list[RecalledPassage]:
    """Return of what was found, best first, what is worth its place in a prompt.

    Args:
        found: Passages that are not in view.
        asked: The message that they are for.
    """
    by_assistant = _ASKS_ASSISTANT.search(asked) is not None
    fitting = [one for one in found if by_assistant or one.who != "tapebot"]
    best = max((one.score for one in fitting), default=0.0)
    least = max(MIN_SCORE, _OF_BEST * best)
    return [one for one in fitting if one.score >= least][:MOST_PASSAGES]


def _has_memory_outside_prompt(
    fold: SessionFold, told: str, facts: Sequence[RecallableFact]
) -> bool:
    """Say whether there is a fact or a line of memory that the prompt does not tell."""
    return any(line not in told for line in _known(fold, facts))


def _known(fold: SessionFold, facts: Sequence[RecallableFact]) -> Iterator[str]:
    snapshot = fold.zone.snapshot
    yield from (fact.text for fact in facts)
    notes = (note.content for note in snapshot.dailies)
    for text in (snapshot.long_term, snapshot.shared, snapshot.reference, *notes):
        yield from memory_lines(text)


def _prompt_and_tail(fold: SessionFold, prompt: str) -> str:
    """Return what the prompt tells, the saves since it was made included: they are in the tail."""
    saved = fold.zone.snapshot
    changed = (note.content for note in saved.dailies if note not in fold.prompt_snapshot.dailies)
    return "\n".join([prompt, saved.long_term, saved.shared, saved.reference, *changed])


def _memory_outside_prompt(memory: MemorySnapshot, told: str) -> MemorySnapshot:
    """Return of memory what the prompt does not tell."""

    def left(text: str) -> str:
        return "\n".join(line for line in memory_lines(text) if line not in told)

    notes = tuple(replace(note, content=left(note.content)) for note in memory.dailies)
    return replace(
        memory,
        long_term=left(memory.long_term),
        shared=left(memory.shared),
        reference=left(memory.reference),
        dailies=notes,
    )


def _chosen(found: Sequence[RecalledPassage], told: str, room: int) -> list[str]:
    """Return passages as one record."""
    lines: list[str] = []
    for passage in found:
        if passage.text in told and not _is_said(passage):
            continue
        line = passage.render()
        room -= estimate_tokens(line)
        if room < 0:
            break
        lines.append(line)
    return ["From the tape and memory:\n" + "\n".join(lines)] if lines else []


def _is_said(passage: RecalledPassage) -> bool:
    """True for what somebody said: that memory holds the same words does not show who said them."""
    return passage.entry is not None and passage.who != "history"
