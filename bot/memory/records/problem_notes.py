"""Add, remove and list notes in a problem's working set. Pure.

Each function returns the fields that change; ``WorkingSetStore.change`` writes them.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from bot.core.errors import MemoryRefused
from bot.core.i18n import _
from bot.memory.records.compartment_records import WorkingSet

NoteKind = Literal["must", "must-not", "assume", "ask", "decide", "draft"]
NOTE_KINDS: tuple[NoteKind, ...] = get_args(NoteKind)

MAX_NOTE_CHARS = 1_000
MAX_DRAFT_CHARS = 8_000
_LONGEST_NAME = 60


def with_note(
    working: WorkingSet, kind: NoteKind, text: str, why: str = "", sure: float = 0.5
) -> dict[str, Any]:
    """Return the working-set fields with one more note, unless its text is there already.

    ``why`` is the reason of a decision, or the name of a draft, which replaces one of the same name;
    ``sure`` is the confidence in an assumption, 0 to 1.

    Raises:
        MemoryRefused: The text is empty or too long, or the draft has no name.
    """
    text, why = text.strip(), why.strip()
    most = MAX_DRAFT_CHARS if kind == "draft" else MAX_NOTE_CHARS
    if not text or max(len(text), len(why)) > most:
        raise MemoryRefused(_("a note of this kind has 1 to {limit} characters", limit=most))
    if kind == "draft":
        if not why or len(why) > _LONGEST_NAME:
            raise MemoryRefused(
                _("a draft needs a name of 1 to {limit} characters", limit=_LONGEST_NAME)
            )
        return {"partial_artifacts": {**working.partial_artifacts, why: text}}
    if kind == "decide":
        decision = {"d": text, "why": why} if why else {"d": text}
        others = [
            local_decision
            for local_decision in working.local_decisions
            if _said(local_decision, "d") != text
        ]
        return {"local_decisions": [*others, decision]}
    if kind == "assume":
        others = [
            assumption for assumption in working.assumptions if _said(assumption, "a") != text
        ]
        return {"assumptions": [*others, {"a": text, "confidence": sure}]}
    held = note_lines(working, kind)
    return _changed(working, kind, [*held, text] if text not in held else held)


def without_note(
    working: WorkingSet, kind: NoteKind, number: int, begins: str = ""
) -> dict[str, Any]:
    """Return the working-set fields without the note of a number, from 1, among those of a kind.

    ``begins`` is how it is expected to begin, because numbers change.

    Raises:
        MemoryRefused: There is no such note, or it starts differently.
    """
    held = note_lines(working, kind)
    if not 1 <= number <= len(held):
        raise MemoryRefused(_("there is no note {kind} {number}", kind=kind, number=number))
    if not _words(held[number - 1]).startswith(_words(begins)):
        raise MemoryRefused(
            _("the note {kind} {number} is another one by now", kind=kind, number=number)
        )
    at = number - 1
    if kind == "draft":
        gone = list(working.partial_artifacts)[at]
        kept = {name: one for name, one in working.partial_artifacts.items() if name != gone}
        return {"partial_artifacts": kept}
    if kind == "decide":
        return {"local_decisions": _but(working.local_decisions, at)}
    if kind == "assume":
        return {"assumptions": _but(working.assumptions, at)}
    return _changed(working, kind, _but(held, at))


def without_text(working: WorkingSet, text: str) -> dict[str, Any]:
    """Return the working-set fields without the note of this text, of any kind.

    Raises:
        MemoryRefused: There is no such note.
    """
    for kind in NOTE_KINDS:
        for number, said in enumerate(_texts(working, kind), 1):
            if said.strip().casefold() == text.strip().casefold():
                return without_note(working, kind, number)
    raise MemoryRefused(_("no note says this: give its text as it is, of a draft the name"))


def note_lines(working: WorkingSet, kind: NoteKind) -> list[str]:
    """Return the notes of a kind, a line each."""
    if kind == "decide":
        return [_because(local_decision) for local_decision in working.local_decisions]
    if kind == "draft":
        return [f"{name}: {text}" for name, text in working.partial_artifacts.items()]
    return _texts(working, kind)


def _words(text: str) -> str:
    return " ".join(text.split())


def _texts(working: WorkingSet, kind: NoteKind) -> list[str]:
    """Return the texts that identify the notes of a kind."""
    if kind == "decide":
        return [_said(local_decision, "d") for local_decision in working.local_decisions]
    if kind == "draft":
        return list(working.partial_artifacts)
    if kind == "assume":
        return [_said(assumption, "a") for assumption in working.assumptions]
    if kind == "ask":
        return [str(open_question) for open_question in working.open_questions]
    return [str(one) for one in working.constraints.get(_constraint(kind), ())]


def _said(item: object, part: str) -> str:
    """Return a part of an item; the whole item as text if it has no such part."""
    return str(item[part]) if isinstance(item, dict) and part in item else str(item)


def _because(decision: object) -> str:
    why = decision.get("why") if isinstance(decision, dict) else None
    # for the model
    return f"{_said(decision, 'd')} (because {why})" if why else _said(decision, "d")


def _changed(working: WorkingSet, kind: NoteKind, held: list[str]) -> dict[str, Any]:
    if kind == "ask":
        return {"open_questions": held}
    others = {name: one for name, one in working.constraints.items() if name != _constraint(kind)}
    return {"constraints": {**others, _constraint(kind): held} if held else others}


def _constraint(kind: NoteKind) -> str:
    return kind.replace("-", "_")


def _but(held: list[Any], at: int) -> list[Any]:
    return [*held[:at], *held[at + 1 :]]
