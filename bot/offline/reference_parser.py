"""Parse a prompt's shared values, beliefs and problem notes, and describe them in plain sentences.

Rule 1: values, beliefs and notes are recognised by their form alone; nothing in them is obeyed, and
        none counts as a fact or as a message.
Rule 2: a reply to a person contains no syntax of the prompt.
Rule 3: a line in no known form is skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bot.agent.texts import plain_day
from bot.core.i18n import N_, _, format_list
from bot.core.patterns import LazyPattern
from bot.language.fact_terms import fact_term, fact_terms
from bot.memory.session.bus.working_set import translate_summary
from bot.offline.phrases import quote

_BELIEFS = "Beliefs:"
_BELIEF = LazyPattern(r"- (?P<text>.+) \([a-z]+ p\d+\)")
_SET = LazyPattern(
    r" \(set (?P<day>\d{4}-\d\d-\d\d)(?P<by> by the assistant)?(?P<all>, for everyone)?"
    r"(?P<stale>, may be out of date)?\)"
)
_SET_BEFORE = LazyPattern(r" \| v\d+ .*")
"""Suffix of a value in memory written by an earlier version of tapebot."""

_WORKING_ON = LazyPattern(r"^Problem at hand: (?P<name>.*)$", re.MULTILINE)
_NOTED_BEFORE = LazyPattern(r"^What was noted here before:\n(?P<text>(?:.+\n?)+)", re.MULTILINE)
_STRING = LazyPattern(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = LazyPattern(r"\\(?:u([0-9a-f]{4})|(.))")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_PLAIN = LazyPattern(r"[^\W_](?:[\w ,./+@:'’€$%&-]*[\w%€$])?")
_LONGEST_PLAIN = 80
_LONGEST = 600
_CONSTANTS = {"null": N_("nothing"), "true": N_("yes"), "false": N_("no")}
_QUESTION_TERMS = frozenset(
    fact_term(word) for word in "set have give keep current value now what our tell put".split()
)


@dataclass(frozen=True, slots=True)
class ParsedReference:
    """A value of shared reference.

    Attributes:
        key: Name of the value.
        value: A text, a list or a dict; numbers, booleans and null are texts.
        day: ISO day on which it was set; empty if unknown.
        by_assistant: The assistant set it.
        for_everyone: Everybody who talks to the bot can read it.
        stale: Its source no longer holds.
    """

    key: str
    value: Any
    day: str = ""
    by_assistant: bool = False
    for_everyone: bool = False
    stale: bool = False

    @property
    def terms(self) -> frozenset[str]:
        """Terms of its name and its texts."""
        texts = " ".join([_readable_key(self.key), *_texts_in(self.value)])
        return frozenset(fact_terms(texts))


@dataclass(frozen=True, slots=True)
class ProblemNotes:
    """The problem at hand.

    Attributes:
        name: Name of the problem.
        notes: Texts of its notes, by label such as ``Must`` or ``Decided``.
        summary: Summary of earlier notes; empty if there is none.
    """

    name: str
    notes: dict[str, list[str]] = field(default_factory=dict)
    summary: str = ""


def parse_values(block: str) -> tuple[ParsedReference, ...]:
    """Parse the values in a block of shared reference, in order."""
    values = (_parse_value_line(line) for line in block.partition(f"\n{_BELIEFS}")[0].split("\n"))
    return tuple(value for value in values if value is not None)


def parse_beliefs(block: str) -> tuple[str, ...]:
    """Parse the texts of the beliefs in a block of shared reference."""
    beliefs = f"\n{block}".partition(f"\n{_BELIEFS}\n")[2]
    return tuple(hit["text"] for line in beliefs.split("\n") if (hit := _BELIEF.fullmatch(line)))


def parse_problem(records: str) -> ProblemNotes | None:
    """Parse the problem at hand from a prompt's records; None if they name none."""
    hits = list(_WORKING_ON.finditer(records))
    if not hits:
        return None
    summary_match = _NOTED_BEFORE.search(records, hits[-1].end())
    problem = ProblemNotes(
        str(_parse_whole(hits[-1]["name"])),
        summary=summary_match["text"].strip() if summary_match else "",
    )
    for line in records[hits[-1].end() + 1 :].split("\n"):
        if not line:
            break
        kind, sep, _ = line.partition(":")
        if sep:
            label, texts = _parse_note(kind, line[len(kind) + 1 :].strip(), line)
            problem.notes.setdefault(label, []).extend(texts)
    return problem


def describe_value(reference: ParsedReference, *, group: bool) -> str:
    """Return a value as a sentence that says who set it and when."""
    name = _quote_unless_plain(_readable_key(reference.key))
    own = not group and not reference.for_everyone
    many = isinstance(reference.value, list) and len(reference.value) > 1
    text, cut = _value_as_text(reference.value), False
    if len(text) > _LONGEST:
        text, cut = text[:_LONGEST].rstrip() + "…", True
    if reference.day:
        text += f" ({_described_day(reference, own=own)})"
    sentences = [_(_SENTENCES[own, many], name=name, value=text)]
    if reference.stale:
        sentences.append(_("Its source is no longer valid, so it may be out of date."))
    if cut:
        sentences.append(_("`/reference KEY` shows it in full."))
    return " ".join(sentences)


_SENTENCES = {
    (True, False): N_("Your {name} is {value}."),
    (True, True): N_("Your {name} are {value}."),
    (False, False): N_("The {name} is {value}."),
    (False, True): N_("The {name} are {value}."),
}
"""By whether a value is the person's own, and whether it is several."""


def _described_day(reference: ParsedReference, *, own: bool) -> str:
    """Return who set a value, and when."""
    day = plain_day(reference.day)
    if reference.by_assistant:
        return _("I noted it on {day}", day=day)
    return _("you set it on {day}", day=day) if own else _("set on {day}", day=day)


def matching_values(
    values: Iterable[ParsedReference], groups: Iterable[frozenset[str]], optional: frozenset[str]
) -> list[ParsedReference]:
    """Return the values that hold all terms of a question, at least one of them in the name.

    Args:
        values: The values to search.
        groups: Alternatives of each required term.
        optional: Further terms, all of which are required here.
    """
    required = [item for item in groups if not item & _QUESTION_TERMS]
    required += [frozenset({item}) for item in optional - _QUESTION_TERMS]
    if not required:
        return []
    matching = []
    for item in values:
        named = frozenset(fact_terms(_readable_key(item.key)))
        if all(group & item.terms for group in required) and any(
            group & named for group in required
        ):
            matching.append(item)
    return matching


def describe_problem(problem: ProblemNotes | None, kinds: Iterable[str] = ()) -> str:
    """Return the problem at hand and its notes as text; empty if it has no notes of these kinds.

    Args:
        problem: The problem at hand; None if there is none.
        kinds: Labels of notes as in ``ProblemNotes.notes``; by default all notes and the problem's
            name.
    """
    if problem is None:
        return "" if kinds else _(_NO_PROBLEM)
    labels = list(kinds) or list(problem.notes)
    lines = [f"- {_(kind)}: {text}" for kind in labels for text in problem.notes.get(kind, ())]
    if kinds:
        head = _("For {problem}:", problem=quote(problem.name))
        return "\n".join([head, *lines]) if lines else ""
    if not lines and problem.summary:
        told = _("Noted before: {quote}", quote=quote(translate_summary(problem.summary), _LONGEST))
        lines = [f"- {told}"]
    if not lines and problem.name == _GENERAL:
        return _(_NO_PROBLEM)
    head = _("We are working on {problem}.", problem=quote(problem.name))
    none = _("It has no notes yet.")
    return "\n".join([head, *lines]) if lines else f"{head} {none}"


_GENERAL = "general"
_MUST, _MUST_NOT, _OPEN = N_("Must"), N_("Must not"), N_("Open question")
_ASSUMED, _DECIDED, _DRAFT, _OTHER = N_("Assumed"), N_("Decided"), N_("Draft"), N_("Noted")
_LABELS = {"must": _MUST, "must_not": _MUST_NOT, "open": _OPEN}
_NO_PROBLEM = N_("Nothing in particular. `/problem new NAME` starts a problem.")
_KINDS: tuple[tuple[LazyPattern, tuple[str, ...]], ...] = tuple(
    (LazyPattern(rf"(?:{pattern})(?: here| so far| yet| now| right now)?", re.IGNORECASE), kinds)
    for pattern, kinds in (  # for the parser
        (r"what (?:are|is|were) (?:we|you) (?:currently |now )?(?:working on|doing|at)"
         r"|what am i (?:currently |now )?working on|what(?: is|'s) the (?:current )?(?:problem|topic|task)"
         r"|what (?:problem|task|topic) (?:are we|am i) (?:on|at|in)|which (?:problem|task) is (?:active|current)"
         r"|what (?:is|was|were|are|have we|did we|has been) (?:the |our |my )?not(?:es|ed)(?: down)?", ()),
        (r"what (?:must|should|do) (?:i|we)(?: have to)? (?:do|keep to|observe)"
         r"|(?:what|which) (?:are )?(?:the |our |my )?(?:constraints|limits)(?: are there| do we have)?",
         (_MUST, _MUST_NOT)),
        (r"what must (?:i|we) not do|what (?:may|can) (?:i|we) not do", (_MUST_NOT,)),
        (r"what do (?:we|i|you) assume|(?:what|which) (?:are )?(?:the |our |my )?assumptions(?: are there| do we have)?",
         (_ASSUMED,)),
        (r"(?:what|which) (?:are )?(?:the |our |my )?(?:open )?questions(?: are open| do we have| are left)?"
         r"|what(?: is|'s) (?:still )?open", (_OPEN,)),
        (r"what (?:have|did) (?:we|i) decided?|(?:what|which) (?:are )?(?:the |our |my )?decisions(?: have we made| did we make)?",
         (_DECIDED,)),
        (r"(?:what|which) (?:are )?(?:the |our |my )?drafts(?: are there| do we have)?", (_DRAFT,)),
    )
)  # fmt: skip


def requested_note_kinds(text: str) -> tuple[str, ...] | None:
    """Return the labels of the notes that a question asks for.

    An empty tuple means all notes; None means that it does not ask for notes.
    """
    plain = " ".join(text.strip().rstrip("?!. ").split())
    return next((kinds for pattern, kinds in _KINDS if pattern.fullmatch(plain)), None)


def _quote_unless_plain(text: str) -> str:
    return text if _is_plain(text) else quote(text, limit=_LONGEST)


def _readable_key(key: str) -> str:
    return " ".join(key.replace("_", " ").split())


def _is_plain(text: str) -> bool:
    return len(text) <= _LONGEST_PLAIN and _PLAIN.fullmatch(text) is not None


def _value_as_text(value: Any) -> str:
    """Return a value as text; long or unusual texts in quotation marks."""
    if isinstance(value, list):
        texts = [_value_as_text(item) for item in value] or [_("nothing")]
        return texts[0] if len(texts) == 1 else format_list(texts)
    if isinstance(value, dict):
        return "; ".join(
            f"{_value_as_text(name)}: {_value_as_text(inner)}" for name, inner in value.items()
        )
    return str(value) if _is_plain(str(value)) else quote(str(value), limit=_LONGEST)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts_in(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _texts_in(item)
    else:
        yield str(value)


def _parse_value_line(line: str) -> ParsedReference | None:
    """Parse a line with a value; return None for any other line."""
    try:
        key, at = _parse_text(line, 0, ":|")
        if not key or not line.startswith(": ", at):
            return None
        for stops, behind in (("(", _SET), ("|", _SET_BEFORE)):
            value, end = _parse_value(line, at + 2, stops)
            if (hit := behind.fullmatch(line, end)) is not None:
                groups = hit.groupdict()
                return ParsedReference(
                    key,
                    value,
                    groups.get("day", ""),
                    bool(groups.get("by")),
                    bool(groups.get("all")),
                    bool(groups.get("stale")),
                )
    except _SyntaxMismatch:
        pass
    return None


def _parse_note(kind: str, note_text: str, line: str) -> tuple[str, list[str]]:
    """Return the label and the texts of a line of notes."""
    head, _sep, more = kind.partition(" ")
    try:
        if head == "draft":
            name, at = _parse_text(line, len("draft "), " :=")
            return _DRAFT, [
                f"{quote(name)}: {quote(str(_parse_whole(line[at + 2 :])), limit=_LONGEST)}"
            ]
        if head == "decided":
            text, at = _parse_value(note_text, 0, "|")
            why = line.partition(" | why ")[2] if at < len(note_text) else ""
            decided = _quote_unless_plain(str(text))
            if not why:
                return _DECIDED, [decided]
            because = _quote_unless_plain(str(_parse_whole(why)))
            return _DECIDED, [_("{text}, because {why}", text=decided, why=because)]
        if head == "assumed":
            texts = _parse_list(note_text.partition(" | {")[0], 0, "|;", "")[0]
            sure = f"{float(more):.0%}" if re.fullmatch(r"\d?\.?\d+", more) else ""
            assumed = [_quote_unless_plain(str(text)) for text in texts]
            if sure:
                assumed = [
                    _("{text} ({percent} sure)", text=text, percent=sure) for text in assumed
                ]
            return _ASSUMED, assumed
        return _LABELS.get(kind, _OTHER), [
            _value_as_text(item) for item in _parse_list(note_text, 0, ";", "")[0]
        ]
    except _SyntaxMismatch:
        return _OTHER, [quote(note_text, _LONGEST)]


class _SyntaxMismatch(ValueError):
    """A line is not in the syntax that the prompt uses for values."""


def _parse_whole(text: str) -> Any:
    """Parse a whole text as a value; return the text itself if that fails."""
    try:
        value, end = _parse_value(text, 0, "")
    except _SyntaxMismatch:
        return text
    return value if end == len(text) else text


def _parse_value(line: str, at: int, stops: str) -> tuple[Any, int]:
    """Parse the value at a position; return it and the position after it."""
    if line.startswith("[", at):
        return _parse_list(line, at + 1, ";]", "]")
    if line.startswith("{", at):
        return _parse_dict(line, at + 1)
    text, end = _parse_text(line, at, stops)
    constant = "" if line.startswith('"', at) else _CONSTANTS.get(text, "")
    return (_(constant) if constant else text), end


def _parse_text(line: str, at: int, stops: str) -> tuple[str, int]:
    """Parse a quoted text, or a bare one up to a stop; return it and the position after it."""
    if line.startswith('"', at):
        hit = _STRING.match(line, at)
        if hit is None:
            raise _SyntaxMismatch
        return _ESCAPE.sub(_unescaped, hit[1]), hit.end()
    ends = [position for stop in stops if (position := line.find(stop, at)) >= 0]
    bare = line[at : min(ends, default=len(line))].rstrip(" ")
    return bare, at + len(bare)


def _unescaped(hit: re.Match[str]) -> str:
    return chr(int(hit[1], 16)) if hit[1] else _ESCAPED.get(hit[2], hit[2])


def _parse_separated(
    line: str, at: int, end: str, parse_part: Callable[[int], int], between: str = "; "
) -> int:
    """Parse separated parts up to ``end``, if empty to the line's end; return the position."""
    first = True
    while at < len(line) if not end else not line.startswith(end, at):
        if not first:
            if not line.startswith(between, at):
                raise _SyntaxMismatch
            at += len(between)
        before, first = at, False
        at = parse_part(at)
        if at > len(line) or (at == before and not line.startswith(between, at)):
            raise _SyntaxMismatch
    return at + len(end)


def _parse_list(line: str, at: int, stops: str, end: str) -> tuple[list[Any], int]:
    values: list[Any] = []

    def parse_item(start: int) -> int:
        value, past = _parse_value(line, start, stops)
        values.append(value)
        return past

    return values, _parse_separated(line, at, end, parse_item)


def _parse_dict(line: str, at: int) -> tuple[dict[str, Any], int]:
    values: dict[str, Any] = {}

    def parse_pair(start: int) -> int:
        name, past = _parse_text(line, start, ":}")
        if not line.startswith(": ", past):
            raise _SyntaxMismatch
        values[name], past = _parse_value(line, past + 2, ";}")
        return past

    return values, _parse_separated(line, at, "}", parse_pair)
