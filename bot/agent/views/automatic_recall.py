"""Search memory for the newest message and add the best passages to the prompt.

Rule 1: facts are searched for any message with search words; the tape and files for one that asks a
    question or refers to the past, and for models that depend on it, for any such message.
Rule 2: passages are people's own words; the assistant's only if the message asks for them.
Rule 3: there are few passages, and each adds something to what the prompt shows; see
    ``passage_selection.py``.
Rule 4: it costs nothing if the prompt already shows everything: no earlier messages, and no fact or
    line of memory missing from the prompt.
Rule 5: no turn waits for the index, and the search is cheap: it ranks few candidates, and finds
    nothing where many entries have all words of the message.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import chain

from anyio import to_thread

from bot.agent.views.passage_selection import select_passages
from bot.core.clock import Clock
from bot.core.patterns import LazyPattern
from bot.llm.base import estimate_tokens
from bot.memory.gate.memory_validation import memory_lines
from bot.memory.records.conversation_entries import replaced_entry_id
from bot.memory.records.tombstones import is_erased
from bot.memory.session.recall import (
    RecalledPassage,
    fitting_facts,
    recall_passages,
)
from bot.memory.session.state.session_fold import SessionFold
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.state.zone_snapshot import MemorySnapshot
from bot.memory.session.vector_index import VectorIndex
from bot.tape.entries import TapeEntry
from bot.tape.index.terms import telling_terms
from bot.tape.search import problem_of
from bot.tape.service import TapeService

CANDIDATES = 8
MIN_RECALL_BUDGET = 600
"""Minimum token budget for builders and models that depend on automatic recall."""

_LOOKED_BACK = 200
"""Number of entries before the view in which earlier messages are searched."""

UNLIMITED_DAYS = 36_500
_ASKS = LazyPattern(
    r"[?？؟]|^\W*(?:who|whom|whose|what|when|where|which|why|how|do|does|did|is|are|was|were|can|could|have|has|tell me|show me|list|find"
    r"|wer|wem|wen|was|wann|wo|woher|wohin|welche\w?|warum|wie|wieviel\w?|hast|habe|weisst|weißt|kannst|zeig\w?|nenn\w?"
    r"|qui|que|quoi|quand|ou|où|quel\w{0,3}|pourquoi|comment|combien|est-ce|quien|quién|qué|cuando|cuándo|donde|dónde|cual|cuál|como|cómo|cuanto|cuánto"
    r"|chi|che|cosa|quando|dove|quale|quali|perche|perché|come|quanto|quem|o que|onde|qual|quais|quanto"
    r"|кто|что|когда|где|куда|какой|какая|какие|почему|как|сколько|чей)\b|吗|呢|什么|哪|谁|多少|几|怎么|か。?$|なに|何|いつ|どこ|だれ|誰",
    re.IGNORECASE,
)
_LOOKS_BACK = LazyPattern(
    r"\b(?:remember|recall|last time|last (?:week|month|year)|earlier|before|again|as usual|the usual|same as|we (?:talked|spoke|discussed|agreed|decided)"
    r"|i (?:told|said|mentioned)|you (?:said|told|suggested|recommended|wrote|gave)|previous\w{0,2}|still"
    r"|erinner\w{0,3}|letztes? mal|neulich|damals|vorhin|wieder|wie immer|besprochen|gesagt|erwähnt|vorgeschlagen|empfohlen"
    r"|souviens|rappelle|la dernière fois|dernièrement|encore|comme d'habitude|dit|parlé|recuerda\w?|la última vez|otra vez|como siempre|dijiste|dije|hablamos"
    r"|ricord\w{1,2}|l'ultima volta|di nuovo|come sempre|detto|lembra\w?|da última vez|de novo|como sempre|disse|помни\w{1,3}|в прошлый раз|снова|опять|как обычно|говорил\w?)\b"
    r"|记得|上次|之前|以前|覚えて|前回|この前",
    re.IGNORECASE,
)
_ASKS_ASSISTANT = LazyPattern(
    r"\b(?:you|u) (?:ever |just |have |had |'ve )?(?:said|told|suggested?|recommend\w{0,4}|wrote|gave|listed|explained|calculated|answered|mentioned|proposed)"
    r"|\b(?:did|have|do) you (?:ever )?(?:say|tell|suggest|recommend|write|give|list|explain|calculate|answer|mention|propose)"
    r"|\byour (?:answer|list|advice|suggestion|recommendation|recipe|plan)"
    r"|\b(?:hast|hattest) du|\bdein\w{0,2} (?:vorschlag|antwort|liste|rat|empfehlung)|\btu (?:as|avais)|\b(?:dijiste|sugeriste|recomendaste|hai detto|hai consigliato|você disse|ты (?:сказал|советовал))"
    r"|你(?:说|建议|推荐)|(?:あなた|君)(?:が|は)(?:言|勧)",
    re.IGNORECASE,
)
_WORDS = LazyPattern(r"\w+")
_EMPTY = frozenset(
    "ok okay k yes yeah yep yup no nope nah thanks thank thx ty please hi hello hey bye goodbye cool "
    "great good nice fine perfect sure right exactly lol haha hm hmm go on stop continue more next "
    "again done well oh wow morning night evening ja nein danke bitte hallo moin gut genau weiter "
    "oui non merci bonjour salut si sí sì gracias hola vale grazie ciao obrigado não да нет спасибо "
    "привет ладно 好 好的 谢谢 你好 嗯 はい いいえ ありがとう こんにちは 네 아니요 감사합니다 안녕".split()
)


@dataclass(slots=True)
class AutomaticRecall:
    """Passages recalled for the newest message: searched once, the same for all steps of a turn.

    Attributes:
        message_id: Id of the newest message.
        lines: Records for the tail of the prompt.
        facts: Numbers of the facts among them.
        from_files: Whether passages of files may be among them, which are text from outside.
        earlier_check: Key and result of the last check for earlier messages: start of the view,
            problem, and whether the problem has messages before the view.
    """

    message_id: int = 0
    lines: list[str] = field(default_factory=list)
    facts: tuple[int, ...] = ()
    from_files: bool = False
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
        reads_prompt: bool = True,
        facts: Callable[[], Sequence[RecalledPassage]],
        outdated: Callable[[], Collection[int]] = tuple,
        vectors: VectorIndex | None = None,
        files: Callable[[str], Awaitable[list[RecalledPassage]]] | None = None,
    ) -> list[str]:
        """Return the records for the newest message; empty if nothing matches.

        From the tape they contain only entries of the active problem.

        Args:
            tape: The session's tape.
            fold: The session's state; messages in view are not recalled.
            zone: The session's memory zone.
            clock: Source of the current time.
            prompt: The system prompt; what it contains is not recalled.
            room: Token budget.
            lives_on_it: Whether the model depends on automatic recall, because it does not search
                itself.
            reads_prompt: Whether the model needs no person's words for what memory or a hand-off note
                tells in others.
            facts: Returns the facts of the scopes that the session may read.
            outdated: Returns the ids of entries that facts rest on which have ended.
            vectors: Index of the tapes for semantic search; None searches by words alone.
            files: Returns passages from the session's files; None searches none.
        """
        newest = _newest_message(fold)
        if newest is None or newest.id == self.message_id:
            return self.lines if newest is not None else []
        words = str(newest.payload.get("content", ""))
        told, recallable_facts = _prompt_and_tail(fold, prompt), facts()
        recalled_passages: list[RecalledPassage] = []
        searchable = not has_no_search_words(words)
        wanted = searchable and (lives_on_it or asks_about_past(words))
        untold = [fact for fact in recallable_facts if fact.text not in told]
        in_files = await files(words) if wanted and files is not None else []
        if wanted and (
            in_files
            or _has_memory_outside_prompt(fold, told, recallable_facts)
            or await self._said_before(tape, fold)
        ):
            recalled_passages = await recall_passages(
                tape,
                _memory_outside_prompt(zone.read(), told),
                words,
                days=UNLIMITED_DAYS,
                now=clock.now(),
                timezone=zone.timezone,
                limit=CANDIDATES,
                before=fold.window.first_id,
                facts=untold,
                vectors=vectors,
                problem=fold.search_problem,
                files=in_files,
                outdated=outdated(),
                without_assistant=not asks_assistant(words),
                quick=True,
            )
        elif searchable and untold:
            # Thousands of facts take a tenth of a second.
            recalled_passages = await to_thread.run_sync(fitting_facts, untold, words, CANDIDATES)
        passages = _not_in_view(recalled_passages, fold, told)
        shown = chain(told.splitlines() if reads_prompt else (), _said_in_view(fold, newest))
        chosen = _within(select_passages(passages, words, shown), room) if passages else []
        self.lines = _record(chosen)
        self.facts = tuple(passage.fact for passage in chosen if passage.fact)
        self.from_files = bool(in_files and self.lines)
        self.message_id = newest.id
        return self.lines

    async def _said_before(self, tape: TapeService, fold: SessionFold) -> bool:
        """Return whether the problem has messages before the view; checked once for each cut."""
        cut, problem = fold.window.first_id, fold.problem
        if self.earlier_check[:2] != (cut, problem):
            self.earlier_check = (cut, problem, await _says_something(tape, cut, problem))
        return self.earlier_check[2]


def _newest_message(fold: SessionFold) -> TapeEntry | None:
    spoken = reversed(fold.window.conversation())
    return next((entry for entry in spoken if entry.payload.get("role") == "user"), None)


def _not_in_view(
    recalled_passages: Sequence[RecalledPassage], fold: SessionFold, told: str
) -> list[RecalledPassage]:
    """Return the passages that are not in view, told, or replaced by an edit that is in view."""
    if not recalled_passages:
        return []
    spoken = fold.window.conversation()
    shown = {one for entry in spoken for one in (entry.id, replaced_entry_id(entry)) if one}
    seen = shown | set(fold.window.queued) | fold.refused.entries
    return [
        passage
        for passage in recalled_passages
        if passage.entry not in seen and (_is_said(passage) or passage.text not in told)
    ]


def _is_said(passage: RecalledPassage) -> bool:
    """Return whether the passage quotes a message."""
    return passage.entry is not None and passage.who != "history"


def _said_in_view(fold: SessionFold, newest: TapeEntry) -> Iterator[str]:
    """Yield the texts of the messages in view before the newest."""
    for entry in fold.window.conversation():
        if entry.kind == "message" and entry.id != newest.id and not is_erased(entry):
            yield str(entry.payload.get("content") or "")


async def _says_something(tape: TapeService, before: int, problem: str) -> bool:
    """Return whether the problem has a message before this id; True if none is near."""
    async with aclosing(tape.read_back(before)) as entries:
        async for entry in entries:
            own = entry.kind == "message" and problem_of(entry) == problem
            if own or entry.id < before - _LOOKED_BACK:
                return True
    return False


def has_no_search_words(text: str) -> bool:
    """Return whether a message has nothing to search for, such as a greeting or an "ok"."""
    words = _WORDS.findall(text.lower())
    return not telling_terms(text) or (len(words) <= 2 and _EMPTY.issuperset(words))


def asks_about_past(text: str) -> bool:
    """Return whether a message asks a question or refers to the past."""
    return _ASKS.search(text) is not None or _LOOKS_BACK.search(text) is not None


def asks_assistant(text: str) -> bool:
    """Return whether a message asks for what the assistant said."""
    return _ASKS_ASSISTANT.search(text) is not None


def _has_memory_outside_prompt(
    fold: SessionFold, told: str, facts: Sequence[RecalledPassage]
) -> bool:
    """Return whether a fact or a line of memory is missing from the prompt."""
    return any(line not in told for line in _known(fold, facts))


def _known(fold: SessionFold, facts: Sequence[RecalledPassage]) -> Iterator[str]:
    snapshot = fold.zone.snapshot
    yield from (fact.text for fact in facts)
    notes = (note.content for note in snapshot.dailies)
    for text in (snapshot.long_term, snapshot.shared, snapshot.reference, *notes):
        yield from memory_lines(text)


def _prompt_and_tail(fold: SessionFold, prompt: str) -> str:
    """Return the prompt's text and the saves since it was built, which are in the tail."""
    saved = fold.zone.snapshot
    changed = (note.content for note in saved.dailies if note not in fold.prompt_snapshot.dailies)
    return "\n".join([prompt, saved.long_term, saved.shared, saved.reference, *changed])


def _memory_outside_prompt(memory: MemorySnapshot, told: str) -> MemorySnapshot:
    """Return the part of memory that the prompt does not contain."""

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


def _within(passages: Sequence[RecalledPassage], room: int) -> list[RecalledPassage]:
    """Return the best passages that fit the budget."""
    kept = []
    for passage in passages:
        room -= estimate_tokens(passage.render())
        if room < 0:
            break
        kept.append(passage)
    return kept


def _record(passages: Sequence[RecalledPassage]) -> list[str]:
    """Return passages as one record; empty if there are none."""
    lines = [passage.render() for passage in passages]
    return ["From the tape and memory:\n" + "\n".join(lines)] if lines else []
