"""Number the calls that wait for a person's yes, and ask for it.

Numbers of calls are unique in the workspace, so that a person can answer from any chat of theirs. The
small tape ``workspace:approvals`` tells which session a number belongs to; the call itself and its
decision are on the session's tape. A number is taken before the call is on that tape: a kill in
between leaves a number without a call, which is answered as unknown.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import ValidationError

from bot.agent.foreign_text import code, one_line
from bot.agent.texts import joined_clauses
from bot.agent.tools.registry import Tool
from bot.core.i18n import _, format_money, ngettext
from bot.memory.records.argument_labels import Origin
from bot.memory.records.pending_calls import PendingCall
from bot.memory.records.schedules import find_zone
from bot.memory.session.scope.workspace_tape import WorkspaceTape
from bot.tape.entries import TapeEntry, event
from bot.tape.store import TapeStore

APPROVALS_TAPE = "workspace:approvals"
APPROVAL_LIFETIME = timedelta(hours=24)
"""How long a call waits; then it counts as denied."""

LONGEST_QUESTION = 16_000
"""Characters of a question that somebody may still read; a call with a longer one is not asked for."""

_ASKED = "approval.asked"
_CLOSED = "approval.closed"
_LONGEST_PROSE = 300
_LONG = 8_000
"""Characters of arguments from which on prose is shortened, so that the rest can be shown whole."""
_LONGEST_REASON = 300
_MOST_FOREIGN = 5
_MOST_KEPT = 1_000
_MOST_CLOSED = 100


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """Where a call waits.

    Attributes:
        number: Its number.
        session: The session's key.
        key: Identifies the call in the session.
        people: Identities of those who asked for it.
    """

    number: int
    session: str
    key: str
    people: tuple[str, ...]


class ApprovalsFold:
    """The numbers of waiting calls, and of some that waited lately."""

    def __init__(self) -> None:
        self.waiting: dict[int, WaitingCall] = {}
        self.closed: dict[int, WaitingCall] = {}
        self.last = 0

    def apply(self, entry: TapeEntry) -> None:
        """Apply one entry; a malformed one changes nothing."""
        number = entry.data.get("number")
        if type(number) is not int:
            return
        if entry.name == _ASKED:
            self._add(number, entry.data)
        elif entry.name == _CLOSED and (call := self.waiting.pop(number, None)) is not None:
            self.closed[number] = call
            if len(self.closed) > _MOST_CLOSED:
                del self.closed[next(iter(self.closed))]

    def _add(self, number: int, data: dict[str, Any]) -> None:
        self.last = max(self.last, number)
        people = tuple(map(str, data.get("people") or ()))
        self.waiting[number] = WaitingCall(
            number, str(data.get("session")), str(data.get("key")), people
        )
        if len(self.waiting) > _MOST_KEPT:
            # Numbers without a call, left by kills, must not stay for ever.
            del self.waiting[next(iter(self.waiting))]


class Approvals:
    """Numbers of calls that wait for a yes, over all sessions.

    Args:
        store: The store of all tapes.
    """

    def __init__(self, store: TapeStore) -> None:
        self._tape = WorkspaceTape(store, APPROVALS_TAPE, ApprovalsFold())

    async def take_number(self, session: str, key: str, people: Collection[str]) -> int:
        """Return a new number for a call; for a key that has one already, the same.

        Args:
            session: The session's key.
            key: Identifies the call in the session.
            people: Identities of those who asked for it.

        Raises:
            TapeWriteError: The storage failed.
        """
        fold = self._tape.fold

        def compose() -> tuple[list[TapeEntry], int]:
            for asked in fold.waiting.values():
                if (asked.session, asked.key) == (session, key):
                    return [], asked.number
            number = fold.last + 1
            data = {"number": number, "session": session, "key": key, "people": list(people)}
            return [event(_ASKED, data)], number

        return await self._tape.change(compose)

    async def close(self, number: int) -> None:
        """Forget a number whose call was decided; harmless if that is done already."""

        def compose() -> tuple[list[TapeEntry], None]:
            waits = number in self._tape.fold.waiting
            return ([event(_CLOSED, {"number": number})] if waits else []), None

        await self._tape.change(compose)

    async def waiting(self) -> list[WaitingCall]:
        """Return the numbers that wait in all sessions, oldest first."""
        await self._tape.refresh()
        return list(self._tape.fold.waiting.values())

    def closed(self, number: int) -> WaitingCall | None:
        """Return where a number waited until lately, as far as the tape was read."""
        return self._tape.fold.closed.get(number)


def approval_question(call: PendingCall, tool: Tool[Any] | None = None) -> str:
    """Return the question to a person whether a call may run, with all of its arguments, as Markdown."""
    asked = _own_question(call, tool)
    if asked is not None:
        lines = [asked]
    else:
        unsaid = {
            one.name: one
            for one in call.labels
            if not one.is_said and (one.sensitive or one.origin is Origin.OUTSIDE)
        }
        named = tool_label(call, tool)
        lines = [_("May I run {tool}? (call {number})", tool=named, number=call.number)]
        for line, name in _argument_lines(call):
            marked = call.foreign and not call.reasons and name in unsaid
            lines.append(f"{line} ({unsaid[name].describe()})" if marked else line)
    if call.cost:
        lines.append(_("It costs about {amount}.", amount=format_money(call.cost)))
    if call.foreign:
        shown = _foreign(call)
        if (more := len(call.foreign) - _MOST_FOREIGN) > 0:
            shown = joined_clauses([shown, ngettext("and {n} more", "and {n} more", more)])
        lines.append(_("I had read what is not your own words: {sources}.", sources=shown))
    if call.reasons:
        lines.append(_("I ask because {reasons}.", reasons=_reasons(call)))
    lines.append(
        _(
            "Say yes or no, or send `/approve {number}`; without an answer it is no.",
            number=call.number,
        )
    )
    return "\n".join(lines)


def _own_question(call: PendingCall, tool: Tool[Any] | None) -> str | None:
    """Return the sentence by which a tool asks for a call itself; None if it has none."""
    if tool is None or tool.question is None:
        return None
    try:
        given = tool.arguments.model_validate_json(call.arguments or "{}")
    except ValidationError:
        return None
    zone = find_zone(call.timezone) or ZoneInfo("UTC")
    return tool.question(given, call.expires - APPROVAL_LIFETIME, zone)


def tool_label(call: PendingCall, tool: Tool[Any] | None) -> str:
    """Return the name of a call's tool, and of the server that it belongs to, as Markdown."""
    kind, server, name = f"{'' if tool is None else tool.name}..".split(".", 2)
    if kind != "mcp":
        return code(call.tool)
    return _("{tool} of {server}", tool=code(name.removesuffix("..")), server=code(server))


def interrupted_text(call: PendingCall, tool: Tool[Any] | None) -> str:
    """Return what a person is told of a call of which no usable answer came, as Markdown."""
    told = _(
        "I got no usable answer when I ran {tool} (call {number}), and I do not know whether it took "
        "effect. Please check before you ask for it again.",
        tool=tool_label(call, tool),
        number=call.number,
    )
    whole = "\n".join([told, *(line for line, _name in _argument_lines(call))])
    return whole if len(whole) <= LONGEST_QUESTION else told


def _foreign(call: PendingCall) -> str:
    return joined_clauses(
        one_line(f"{one}", _LONGEST_REASON) for one in call.foreign[:_MOST_FOREIGN]
    )


def _reasons(call: PendingCall) -> str:
    return joined_clauses(one_line(f"{one}", _LONGEST_REASON) for one in call.reasons)


def explanation(call: PendingCall, state: str) -> str:
    """Return where a call's arguments come from, and what was in view, as Markdown.

    Args:
        call: The call.
        state: What became of it; empty while it waits.
    """
    lines = [
        _(
            "Call {number}: {tool}. {state}.",
            number=call.number,
            tool=code(call.tool),
            state=state or _("It waits for a yes"),
        )
    ]
    labels = {label.name: label for label in call.labels}
    for line, name in _argument_lines(call):
        lines.append(f"{line}: {labels[name].describe()}" if name in labels else line)
    if call.reasons:
        lines.append(_("It waited because {reasons}.", reasons=_reasons(call)))
    if call.foreign:
        lines.append(_("In view from outside: {sources}.", sources=_foreign(call)))
    else:
        lines.append(_("Nothing from outside was in view."))
    lines.append(_("`#12` is the entry 12 of the tape."))
    return "\n".join(lines)


def decision_buttons(number: int) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the buttons below the question for a call's approval: labels and commands."""
    return (
        (_("Approve {number}", number=number), f"/approve {number}"),
        (_("Deny {number}", number=number), f"/deny {number}"),
    )


def _argument_lines(call: PendingCall) -> list[tuple[str, str]]:
    """Return a line for each argument, with its name."""
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return [(f"- {code(call.arguments, LONGEST_QUESTION)}", "")]
    prose = {one.name for one in call.labels if one.role == "text" and not one.sensitive}
    lines = []
    for name, value in given.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        title, left = name if name.isidentifier() else code(name), len(text) - _LONGEST_PROSE
        line = f"- {title}: {code(text, LONGEST_QUESTION)}"
        if name in prose and left > 0 and len(call.arguments) > _LONG:
            more = ngettext("({n} more character)", "({n} more characters)", left)
            line = f"- {title}: {code(text[:_LONGEST_PROSE])} … {more}"
        lines.append((line, name))
    return lines
