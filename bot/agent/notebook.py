"""The notebook in place of a language model: it keeps what is said, and quotes it when asked.

Rule 1: a message with a question mark is answered by the person's own lines, facts and files that share
    its telling words, newest first, as they were written. Any other is answered with "Kept.".
Rule 2: it reads no language. A word is telling if few of the lines at hand have it, and if it is none of
    the words of grammar, which are a table.
Rule 3: it reads the messages and the results of its own look-ups, and keeps no state: a turn that is
    resumed goes on. Nothing else of a prompt is shown.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from bot.agent.commands.plain_words import REMEMBER
from bot.agent.context import RECALL_CALL, UNANSWERED
from bot.agent.grammar_words import grammar_terms
from bot.core.i18n import N_, _, format_date
from bot.core.patterns import LazyPattern
from bot.llm.base import CapabilityProfile, ChatMessage, ModelReply, ModelRequest, OnText, ToolCall
from bot.llm.instrumented import instrumented
from bot.llm.openai_format import part_text
from bot.tape.index.terms import parse_query, tokenize, with_pairs

_KEPT = N_("Kept.")
_FOUND = N_("You wrote, newest first:")
_NOT_FOUND = N_("No line of yours has these words.")
_TASK = N_("This task needs a language model, and none is connected: `TAPEBOT_MODEL` names one.")
_NO_MODEL = N_(
    "No language model is connected, so I am a notebook: I keep what you write, and a question mark finds "
    'your lines again. `/remind` sets a reminder, and a line that begins with "{remember}" becomes a fact. '
    "A model would talk with you, read pictures, keep facts up to date and do tasks: `TAPEBOT_MODEL` in "
    "`.env` names one."
)
_NOTHING_WRITTEN = N_("No language model was connected: what was said is on the tape alone.")

_HEADER = LazyPattern(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d, (?P<who>[^\n\]]{1,200}?)(?P<unasked>, sent by tapebot, not by the user)?\] "
)
_ADDED = LazyPattern(r"\n(?:<quoted>\n|\((?:image|audio|video|document|voice message)\b)")
# A line of which some no longer holds has a remark before the colon, and is not matched.
_LINE = LazyPattern(
    r"(?:> )?- (?:(?P<when>\d{4}-\d\d-\d\d(?: \d\d:\d\d)?), )?(?P<who>(?:file:)?[^\n\[:]{1,200})"
    r"(?: \[(?P<refers>[^\]\n]*)\])?: (?P<text>.*)"
)
_NOT_A_PERSON = LazyPattern(r"(?:tapebot|history|note|memory)\b.*")
_ASKS = LazyPattern(r"[？؟՞⸮]|\?(?![\w=&%/])")  # The one in an address asks nothing.
_ENDS_ASKING = LazyPattern(r"[?？؟՞⸮][\s\"'»”’)]*\Z")
_HIRAGANA = LazyPattern("[\u3041-\u309f\u30fc]+")
_FILE = "file:"
_WITHIN_SESSION = LazyPattern(r'<handoff name="(?!session/)')
_MOST_LINES, _MOST_NEWER = 4, 2
_LONGEST_QUERY = 1_000
_ANY_DAYS = 36_500
_NEAR = 0.3
"""Share of the best line's score that another line must have."""
_LEAST, _LEAST_NEWER = 0.15, 0.3
"""Share of the weights of the words of a question, or of the best line, that a line must have."""
_RARE, _FEW = 2, 0.2
"""A telling word is in at most so many lines at hand, or in this share of them."""


class NotebookModel:
    """Answers every request at once, without network, tokens or cost.

    Args:
        in_place_of_model: Whether a model is connected, and only this answer is the notebook's.
    """

    name = "offline"
    profile = CapabilityProfile(tools=True, context_tokens=128_000, can_judge=False)

    def __init__(self, *, in_place_of_model: bool = False) -> None:
        self._says_no_model = not in_place_of_model

    @instrumented
    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Return the reply; never fails, whatever the request holds."""
        if request.purpose == "consolidation":
            return _calls("save_memory", [{"history_entry": _(_NOTHING_WRITTEN), "changes": []}], 0)
        if request.purpose != "turn":
            return ModelReply(_(_NOTHING_WRITTEN), model=self.name)
        messages = _with_texts(request)
        begin = max((at for at, one in enumerate(messages) if _is_answer(one)), default=-1)
        turn = messages[begin + 1 :]
        asked, found = _asked(turn), _looked_up(turn)
        at_hand = [one.words for one in _people(messages) if not _ENDS_ASKING.search(one.words)]
        missing = [one for question in asked for one in question.missing(found, at_hand)]
        may_ask = any(tool.name == RECALL_CALL for tool in request.tools)
        if missing and may_ask and request.tool_choice == "auto":
            return _calls(RECALL_CALL, missing, len(messages))
        text = "\n\n".join(dict.fromkeys(one.answer(found, at_hand) for one in asked)) or _(_KEPT)
        goes_on = any(_WITHIN_SESSION.search(one["content"]) for one in messages[:1])
        if begin < 0 and not goes_on and self._says_no_model:
            text += f"\n\n_{_(_NO_MODEL, remember=_(REMEMBER))}_"
        if on_text is not None:
            on_text(text)
        return ModelReply(text, model=self.name, cache_reported=False)

    async def aclose(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that may be quoted; ``when`` is its day, perhaps with hour and minute."""

    when: str
    entry: int
    text: str
    file: str

    @property
    def age(self) -> tuple[str, int]:
        return self.when, self.entry

    def __str__(self) -> str:
        try:
            day = format_date(date.fromisoformat(self.when[:10])) + self.when[10:]
        except ValueError:
            day = ""
        return "- " + ": ".join(filter(None, (day, self.file, self.text)))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A message to answer: its author's label, and the words."""

    who: str
    words: str
    is_task: bool

    @property
    def is_in_group(self) -> bool:
        return self.who.endswith(")")

    def answer(self, found: Mapping[str, str], at_hand: Sequence[str]) -> str:
        """Return the answer, given the results of look-ups and the lines in view."""
        if self.is_task or not _ASKS.search(self.words):
            return _(_TASK if self.is_task else _KEPT)
        lines = sorted(self._quoted(found, at_hand), key=lambda one: one.age, reverse=True)
        return "\n".join([_(_FOUND), *map(str, lines)]) if lines else _(_NOT_FOUND)

    def missing(self, found: Mapping[str, str], at_hand: Sequence[str]) -> list[dict[str, Any]]:
        """Return the arguments of the next look-ups for a question; empty if all are done."""
        if self.is_task or not _ASKS.search(self.words):
            return []
        first = [one for one in self._look_ups(self.words) if json.dumps(one) not in found]
        best = self._quoted(found, at_hand)[:1] if not first else []
        follow_ups = [look_up for one in best for look_up in self._look_ups(one.text)]
        return first or [one for one in follow_ups if json.dumps(one) not in found]

    def _look_ups(self, words: str) -> list[dict[str, Any]]:
        """Return the arguments that find a person's lines, and those that find facts and files."""
        query = {"query": words[:_LONGEST_QUERY]}
        name, _opened, member = self.who.rpartition(" (")
        who = member.removesuffix(")") if self.is_in_group and name else self.who
        return [*([{**query, "who": who}] if who else []), {**query, "days": _ANY_DAYS}]

    def _quoted(self, found: Mapping[str, str], at_hand: Sequence[str]) -> list[_Line]:
        """Return the lines nearest to the question, the best first, and newer ones near to the best.

        What the best line tells may have changed in words that the question does not have.
        """
        nearest = _near(self.words, self._lines(found, self.words), at_hand, _LEAST)[:_MOST_LINES]
        if not nearest:
            return []
        lines = self._lines(found, nearest[0].text)
        newer = [one for one in lines if one.when > nearest[0].when and one not in nearest]
        return [*nearest, *_near(nearest[0].text, newer, at_hand, _LEAST_NEWER)[:_MOST_NEWER]]

    def _lines(self, found: Mapping[str, str], words: str) -> list[_Line]:
        """Return the lines that may be quoted in the results for some words, each text once."""
        results = [found.get(json.dumps(one), "") for one in self._look_ups(words)]
        lines: dict[str, _Line] = {}
        for hit in map(_LINE.fullmatch, "\n".join(results).splitlines()):
            if hit is None or not hit["text"].strip():
                continue
            who, text = hit["who"].strip(), hit["text"].strip()
            file = who.removeprefix(_FILE) if who.startswith(_FILE) else ""
            if file or who == "memory" or (self._wrote(who) and not _ENDS_ASKING.search(text)):
                number = (hit["refers"] or "").removeprefix("#")
                entry = int(number) if number.isdecimal() else 0
                lines.setdefault(_same(text), _Line(hit["when"] or "", entry, text, file))
        return [*lines.values()]

    def _wrote(self, who: str) -> bool:
        # In a private chat, an older name is the same person's.
        return who == self.who or not (self.is_in_group or _NOT_A_PERSON.fullmatch(who))


def _same(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".")


def _near(words: str, lines: Sequence[_Line], at_hand: Sequence[str], least: float) -> list[_Line]:
    """Return the lines that have ``least`` of the weights of the words, best first.

    A word weighs the more the fewer of the lines and of those at hand have it.
    """
    terms = {one: set(with_pairs(tokenize(one.text))) for one in lines}
    others = {_same(one) for one in at_hand} - {_same(one.text) for one in lines}
    bags = [*terms.values(), *(set(with_pairs(tokenize(one))) for one in others)]
    seen = Counter(term for bag in bags for term in bag)
    telling = (
        term
        for term in parse_query(words).terms
        if term not in grammar_terms() and not _HIRAGANA.fullmatch(term)
    )
    weights = {term: math.log(1 + len(bags) / max(1, seen[term])) for term in telling}
    most = max(_RARE, _FEW * len(bags))
    scores = {
        one: sum(weights.get(term, 0.0) for term in bag if seen[term] <= most)
        for one, bag in terms.items()
    }
    enough = max(least * sum(weights.values()), _NEAR * max(scores.values(), default=0.0))
    near = [one for one, score in scores.items() if score and score >= enough]
    return sorted(near, key=lambda one: (scores[one], one.age), reverse=True)


def _with_texts(request: ModelRequest) -> list[ChatMessage]:
    """Return the messages with texts for contents, the last one without the records at its end."""
    messages = [{**one, "content": _text(one.get("content"))} for one in request.messages]
    if messages and request.tail_length:
        messages[-1]["content"] = messages[-1]["content"][: -request.tail_length]
    return messages


def _text(content: Any) -> str:
    return "".join(map(part_text, content)) if isinstance(content, list) else content or ""


def _is_answer(message: ChatMessage) -> bool:
    said = message.get("role") == "assistant" and not message.get("tool_calls")
    return said and message["content"] != UNANSWERED


def _people(messages: Iterable[ChatMessage]) -> list[_Asked]:
    return [_read(one["content"]) for one in messages if one.get("role") == "user"]


def _asked(turn: Iterable[ChatMessage]) -> list[_Asked]:
    """Return the messages to answer; in a group those of who wrote last, since others may only be heard."""
    asked = _people(turn)
    return [one for one in asked if one.who == asked[-1].who or not asked[-1].is_in_group]


def _read(text: str) -> _Asked:
    """Return a message of the prompt, without what was quoted in it and what its files say."""
    header = _HEADER.match(text)
    body = text[header.end() :] if header else text
    if added := _ADDED.search(body):
        body = body[: added.start()]
    who = header["who"].strip() if header else ""
    unasked = header is not None and bool(header["unasked"])
    return _Asked(who, body.strip(), unasked and who.startswith("schedule"))


def _looked_up(turn: Sequence[ChatMessage]) -> dict[str, str]:
    """Return the results of the look-ups in a turn, by their arguments."""
    asked = {
        str(call.get("id")): str((call.get("function") or {}).get("arguments"))
        for message in turn
        for call in message.get("tool_calls") or ()
    }
    results = [one for one in turn if one.get("role") == "tool"]
    return {asked.get(str(one.get("tool_call_id")), ""): one["content"] for one in results}


def _calls(name: str, calls: Sequence[dict[str, Any]], step: int) -> ModelReply:
    made = (ToolCall(f"offline-{step}-{at}", name, json.dumps(one)) for at, one in enumerate(calls))
    return ModelReply("", tuple(made), "tool_calls", model=NotebookModel.name)
