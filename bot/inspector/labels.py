"""Names of states and kinds for people, in the current language; templates use it as ``labels``."""

from __future__ import annotations

from collections.abc import Mapping

from bot.bus import Right
from bot.core.i18n import _, pgettext
from bot.memory.session.bus.working_set import translate_summary

Badge = tuple[str, str]
"""A label, and the kind of its badge: ok, warn, bad, info or empty."""


def conversation_state(state: str) -> Badge | None:
    """Return the badge of a conversation's state; None for the usual one."""
    return {
        "answering": (pgettext("conversation", "answering"), "info"),
        "undelivered": (_("answer not delivered"), "warn"),
        "unconsolidated": (_("consolidation failed"), "bad"),
        "damaged": (pgettext("conversation", "cannot be read"), "bad"),
    }.get(state)


def categories() -> dict[str, Badge]:
    """Return the badges of the categories of entries, in the order of their filter."""
    return {
        "message": (pgettext("entry", "message"), ""),
        "answer": (pgettext("entry", "answer"), "ok"),
        "tool": (pgettext("entry", "tool"), ""),
        "anchor": (pgettext("entry", "anchor"), "info"),
        "zone": (pgettext("entry", "memory"), "info"),
        "consolidation": (pgettext("entry", "consolidation"), "ok"),
        "gate": (pgettext("entry", "decision"), "warn"),
        "command": (pgettext("entry", "command"), ""),
        "delivery": (pgettext("entry", "delivery"), ""),
        "turn": (pgettext("entry", "turn"), ""),
        "schedule": (pgettext("entry", "schedule"), "info"),
        "system": (pgettext("entry", "system"), ""),
        "other": (pgettext("entry", "other"), ""),
    }


def turn_status(status: str) -> Badge:
    """Return the badge of how a turn ended."""
    return {
        "ok": (pgettext("turn", "answered"), "ok"),
        "error": (pgettext("turn", "failed"), "bad"),
        "open": (pgettext("turn", "not ended"), "info"),
        "stopped": (pgettext("turn", "stopped"), "warn"),
    }.get(status, (status, ""))


def problem_summary(summary: str) -> str:
    """Return a problem's recorded summary."""
    return translate_summary(summary)


def fact_status(status: str) -> Badge:
    """Return the badge of a fact's status."""
    return {
        "active": (pgettext("fact", "believed"), "ok"),
        "pending": (pgettext("fact", "pending"), "warn"),
        "superseded": (pgettext("fact", "replaced"), ""),
        "retired": (pgettext("fact", "ended"), ""),
        "dropped": (pgettext("fact", "dropped"), ""),
    }[status]


def fact_filters() -> dict[str, str]:
    """Return what facts can be filtered by."""
    return {
        "active": pgettext("facts", "Believed"),
        "pending": pgettext("facts", "Waiting"),
        "ended": pgettext("facts", "No longer valid"),
        "all": pgettext("facts", "All"),
    }


def origin(name: str) -> Badge:
    """Return the badge of where evidence came from."""
    label = {
        "person": _("said in private"),
        "member": _("said in a group, or by an owner"),
        "import": _("imported"),
        "assistant": _("the assistant’s words"),
        "tool": _("a tool’s result"),
        "quoted": _("quoted text"),
        "client": _("a program’s words"),
    }[name]
    return label, "" if name in ("person", "member") else "warn"


def verdict(name: str) -> Badge:
    """Return the badge of a verdict of the write gate."""
    return {
        "approved": (pgettext("verdict", "approved"), "ok"),
        "known": (pgettext("verdict", "known"), "info"),
        "pending": (pgettext("verdict", "pending"), "warn"),
        "logged": (pgettext("verdict", "logged"), "warn"),
        "refused": (pgettext("verdict", "refused"), "bad"),
    }[name]


def destination(name: str) -> str:
    """Return where a proposal went."""
    return {
        "memory": _("in memory"),
        "ended": _("no longer in memory"),
        "waiting": _("waits for a person to decide"),
        "record": _("recorded, but not believed"),
        "nowhere": _("not kept"),
    }[name]


def operation(name: str) -> str:
    """Return what a proposal would do."""
    return {
        "add": _("Add a fact"),
        "strengthen": _("Add evidence"),
        "supersede": _("Replace another fact"),
        "retire": _("End the fact"),
        "restate": _("Keep the part of another fact that stays true"),
        "reopen": _("Believe it again"),
        "accept": _("Accept the fact"),
        "drop": _("Drop the fact"),
        "weaken": _("Remove the newest evidence"),
        "verify": _("Verify the fact"),
        "refute": _("Refute the fact"),
    }[name]


def problem_state(state: str) -> Badge:
    """Return the badge of a problem's state."""
    return {
        "active": (pgettext("problem", "active"), "ok"),
        "paused": (pgettext("problem", "paused"), "warn"),
        "background": (pgettext("problem", "in the background"), ""),
        "completed": (pgettext("problem", "done"), "info"),
    }[state]


def belief_status(status: str) -> Badge:
    """Return the badge of a belief's status."""
    return {
        "active": (pgettext("belief", "believed"), "ok"),
        "stale": (pgettext("belief", "no longer used"), "warn"),
        "retired": (pgettext("belief", "ended"), ""),
    }[status]


def belief_type(name: str) -> str:
    """Return what kind of conclusion a belief is."""
    known = {
        "conclusion": pgettext("belief", "conclusion"),
        "heuristic": pgettext("belief", "heuristic"),
        "policy": pgettext("belief", "policy"),
        "summary": pgettext("belief", "summary"),
        "fact": pgettext("belief", "fact"),
    }
    return _known(known, name)


def changed_by(author: str) -> str:
    """Return who changed a value or decided on a belief."""
    known = {
        "person": _("by a person"),
        "assistant": _("by the assistant"),
        "consolidation": _("by consolidation"),
        "rollback": _("rolled back"),
    }
    return _known(known, author)


def schedule_kind(kind: str) -> str:
    """Return the kind of a schedule."""
    known = {
        "reminder": pgettext("schedule", "reminder"),
        "task": pgettext("schedule", "task"),
    }
    return _known(known, kind)


def occurrence(status: str) -> Badge:
    """Return the badge of what became of an occurrence."""
    return {
        "sent": (pgettext("occurrence", "sent"), "ok"),
        "late": (pgettext("occurrence", "late"), "warn"),
        "missed": (pgettext("occurrence", "missed"), "bad"),
        "held": (pgettext("occurrence", "held"), "info"),
    }.get(status, (status, ""))


def right_state(state: str) -> Badge:
    """Return the badge of whether a right on an MCP tool counts."""
    return {
        "counts": (pgettext("right", "counts"), "ok"),
        "used up": (pgettext("right", "used up"), ""),
        "suspended": (pgettext("right", "suspended"), "warn"),
        "not configured": (pgettext("right", "not configured"), ""),
        "no such tool": (pgettext("right", "no such tool"), ""),
    }.get(state, (state, ""))


def right_choices() -> dict[str, str]:
    """Return what an owner can decide about an MCP tool."""
    return {
        "ask": pgettext("right", "Ask each time"),
        "always": pgettext("right", "Always"),
        "once": pgettext("right", "Once"),
        "reads": pgettext("right", "It only reads"),
        "never": pgettext("right", "Never"),
    }


def token_right(right: Right) -> str:
    """Return what a token with a right may do, as the end of "It may"."""
    return {
        "chat": pgettext("token", "chat through OpenAI’s API, also give commands"),
        "read": pgettext("token", "read memory"),
        "propose": pgettext("token", "propose facts, which wait for you"),
        "site": pgettext("token", "call the site’s own API, as an owner"),
    }[right]


def _known(labels: Mapping[str, str], name: str) -> str:
    return labels.get(name, name)
