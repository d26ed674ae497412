"""``/reference``: values under keys, with versions, that every prompt includes.

Permissions:

Rule 1: in a private chat a person may do everything with their own values.
Rule 2: in a group anybody may read; only an owner may set, roll back and remove.
Rule 3: only an owner may share values with everybody, or unshare them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from bot.agent.commands.memory.fact_text import escape_markdown, shorten
from bot.agent.commands.memory.permissions import OWNER_ONLY_TEXT
from bot.agent.commands.pagination import paginate, split_page_number, usable_buttons
from bot.agent.commands.parser import split_form, split_word
from bot.agent.commands.registry import Command, CommandContext, CommandReply, idempotency_key
from bot.bus import Button
from bot.core.clock import format_time
from bot.memory.gate.reference_values import check_key, check_value, parse_value
from bot.memory.gate.write_result import WriteResult
from bot.memory.records.compartment_records import SharedReference
from bot.memory.records.episodes import episode_id
from bot.memory.records.transcript import format_timestamp
from bot.memory.session.bus.shared_reference import SharedReferenceStore, current_references

_CHANGES = frozenset({"set", "rollback", "remove", "share", "unshare"})
_LISTED = 120
_VERSIONS = 20
_BUTTONS = 3
_QUOTED = re.compile(r'"([^"]+)"\s*(.*)', re.DOTALL)
_EXAMPLE = "For example: `/reference set deadline Friday`."
_NOTHING = (
    "**Reference**\nNothing yet. What you set here is in each of your prompts, word for word, "
    f"until you change it. {_EXAMPLE} `north_stars` and `priorities` are for your main goals: "
    "`/reference set priorities thesis; family`."
)
_HINT = "`/reference KEY` shows a whole value, `/reference versions KEY` its versions."


async def _list(page: int, context: CommandContext) -> CommandReply:
    parts = list(_lists(context))
    text = "\n\n".join([*parts, _HINT]) if parts else _NOTHING
    shown, buttons = paginate(text, page, "/reference page")
    return CommandReply(shown, buttons=buttons)


def _lists(context: CommandContext) -> Iterator[str]:
    memory = context.memory
    own, everybodys = (
        current_references(memory.home.compartments),
        current_references(memory.workspace.compartments),
    )
    if own:
        yield "**Reference**\n" + "\n".join(map(_line, own))
    if everybodys:
        yield "**Shared with everyone**\n" + "\n".join(map(_line, everybodys))


def _line(reference: SharedReference) -> str:
    stale = " (its source is no longer valid)" if reference.stale else ""
    return (
        f"{_label(reference)}: {escape_markdown(shorten(_told(reference.value), _LISTED))}{stale}"
    )


def _label(reference: SharedReference) -> str:
    return f"**{escape_markdown(reference.key)}** v{reference.version}"


def _told(value: Any) -> str:
    """Return a value as text on one line."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return "; ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


async def _show(key: str, context: CommandContext, page: int = 1) -> CommandReply:
    bus, parts = context.memory.bus, []
    if (own := await bus.shared.get(key)) is not None:
        parts += [f"{_label(own)}\n{escape_markdown(_told(own.value))}", await bus.shared.cite(key)]
    if (everybodys := await bus.shared_workspace.get(key)) is not None:
        parts.append(
            f"{_label(everybodys)}, shared with everyone\n{escape_markdown(_told(everybodys.value))}"
        )
        parts.append(await bus.shared_workspace.cite(key))
        if context.author.role == "owner" and context.author.private:
            parts.append(f"Its source is {everybodys.source}.")
    if not parts:
        return CommandReply(await _missing(key, bus.shared))
    if own is not None and own.version > 1:
        parts.append(f"`/reference versions {key}` shows earlier versions.")
    text, buttons = paginate("\n".join(parts), page, f"/reference {key} page")
    return CommandReply(text, buttons=usable_buttons(buttons))


async def _missing(key: str, store: SharedReferenceStore) -> str:
    shown = shorten(key, _LISTED)
    if await store.list_versions(key):
        return f"`{shown}` has no value now; `/reference versions {shown}` shows earlier versions."
    return f"There is no `{shown}`. `/reference` lists the keys."


async def _set(arguments: str, context: CommandContext) -> CommandReply:
    found = _QUOTED.fullmatch(arguments)
    key, text = found.groups() if found is not None else split_word(arguments)
    if not key or not text.strip():
        return CommandReply(f"Which key, and which value? {_EXAMPLE}")
    value = check_value(check_key(key), parse_value(key, text))
    written = await context.memory.bus.write_to_shared(
        key, value, _heard(context), by="person", cause=idempotency_key(context)
    )
    if not written:
        return CommandReply(_elsewhere("set", written), zone_edit=context.memory.with_current_facts)
    told = (
        f"Set: **{escape_markdown(key)}** v{written.id}: {escape_markdown(shorten(_told(value)))}"
    )
    return CommandReply(
        told, zone_edit=context.memory.with_current_facts, buttons=_back(key, int(written.id) - 1)
    )


def _heard(context: CommandContext) -> str:
    return episode_id(context.tape.name, context.command_entry.id)


def _elsewhere(wanted: str, written: WriteResult) -> str:
    """Return the reply to a write that the gate did not put into shared reference."""
    decision = written.decision
    if written.is_assumption:
        return f"Not {wanted}, but noted for the active problem: {decision.reason}."
    logged = " It is on record." if decision.approved else ""
    return f"Not {wanted}: {decision.reason}.{logged}"


async def _versions(arguments: str, context: CommandContext) -> CommandReply:
    key, page = split_page_number(arguments)
    store, lines, older = context.memory.bus.shared, [], []
    numbers = await store.list_versions(key)
    if not numbers:
        return CommandReply(await _missing(key, store))
    for number in reversed(numbers[-_VERSIONS:]):
        reference = await store.get(key, number)
        lines.append(_version(number, reference, context))
        if reference is not None and reference.value is not None and number != numbers[-1]:
            older.append(number)
    if len(numbers) > _VERSIONS:
        lines.append(f"and {len(numbers) - _VERSIONS} older ones")
    text = "\n".join([f"**Versions of {escape_markdown(key)}**", *lines])
    shown, turning = paginate(text, page, f"/reference versions {key} page")
    back = [button for number in older[:_BUTTONS] for button in _back(key, number)]
    return CommandReply(shown, buttons=usable_buttons([*back, *turning]))


def _version(number: int, reference: SharedReference | None, context: CommandContext) -> str:
    if reference is None:
        return f"v{number}: erased"
    when = format_timestamp(format_time(reference.updated_at), context.zone.timezone)
    if reference.value is None:
        return f"v{number}, {when}: removed"
    by = {"person": "", "rollback": ", rolled back"}.get(
        reference.updated_by, f", by {reference.updated_by}"
    )
    return f"v{number}, {when}{by}: {escape_markdown(shorten(_told(reference.value), _LISTED))}"


async def _rollback(arguments: str, context: CommandContext) -> CommandReply:
    key, _, number = arguments.rpartition(" ")
    key, number = key.strip(), number.removeprefix("v")
    if not key or not number.isdecimal() or len(number) > 9:
        return CommandReply("To which version? For example: `/reference rollback deadline 2`.")
    store, to = context.memory.bus.shared, int(number)
    if not await store.rollback(key, to, cause=idempotency_key(context)):
        return CommandReply(
            f"There is no value to restore in version {to} "
            f"of `{shorten(key, _LISTED)}`, or it is the "
            f"current one. `/reference versions {shorten(key, _LISTED)}` lists them."
        )
    reference = await store.get(key)
    told = (
        f"As in version {to} again: {_line(reference)}"
        if reference is not None
        else "Already done."
    )
    return CommandReply(told, zone_edit=context.memory.with_current_facts)


async def _remove(key: str, context: CommandContext) -> CommandReply:
    store = context.memory.bus.shared
    before = await store.get(key)
    if not await store.remove(key, idempotency_key(context)):
        if await context.memory.bus.shared_workspace.get(key) is not None:
            return CommandReply(f"It is shared with everyone. Send `/reference unshare {key}`.")
        return CommandReply(await _missing(key, store))
    back = _back(key, before.version, "Undo") if before is not None else ()
    told = (
        f"Removed: `{key}`. Its versions stay on the tape; `/reference versions {key}` shows them."
    )
    return CommandReply(told, zone_edit=context.memory.with_current_facts, buttons=back)


async def _share(key: str, context: CommandContext) -> CommandReply:
    if context.author.role != "owner":
        return CommandReply(OWNER_ONLY_TEXT)
    bus = context.memory.bus
    reference = await bus.shared.get(key)
    if reference is None:
        return CommandReply(await _missing(key, bus.shared))
    written = await bus.write_to_shared(
        key,
        reference.value,
        _heard(context),
        by="person",
        workspace=True,
        cause=idempotency_key(context),
    )
    if not written:
        return CommandReply(
            _elsewhere("shared", written), zone_edit=context.memory.with_current_facts
        )
    return CommandReply(
        f"Shared: {_line(reference)}\nEveryone who uses this bot will see it, in every chat. "
        f"`/reference unshare {key}` stops it.",
        zone_edit=context.memory.with_current_facts,
    )


async def _unshare(key: str, context: CommandContext) -> CommandReply:
    if context.author.role != "owner":
        return CommandReply(OWNER_ONLY_TEXT)
    store = context.memory.bus.shared_workspace
    if not await store.remove(key, idempotency_key(context)):
        return CommandReply(f"`{shorten(key, _LISTED)}` is not shared.")
    return CommandReply(f"No longer shared: `{key}`.", zone_edit=context.memory.with_current_facts)


def _back(key: str, version: int, label: str = "") -> tuple[Button, ...]:
    if version < 1:
        return ()
    told = label or f"Back to v{version}"
    return usable_buttons([Button(told, f"/reference rollback {key} {version}")])


_FORMS: dict[str, Callable[[str, CommandContext], Awaitable[CommandReply]]] = {
    "set": _set,
    "versions": _versions,
    "rollback": _rollback,
    "remove": _remove,
    "share": _share,
    "unshare": _unshare,
}

_LISTED_FORMS = (
    ("KEY", "show a whole value and its source"),
    ("set KEY VALUE", "set a value: text, a JSON list or object; priorities: `one; two`"),
    ("versions KEY", "show its versions"),
    ("rollback KEY N", "restore version N"),
    ("remove KEY", "remove it"),
    ("share KEY", "share it with everyone who uses this bot; `unshare KEY` stops it"),
)


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, rest = split_form(arguments)
    if form not in _FORMS:
        key, page = split_page_number(arguments)
        return await (_show(key, context, page) if key else _list(page, context))
    if not rest:
        return CommandReply(f"Which one? `/reference` lists them.\n\n{REFERENCE_COMMAND.usage}")
    return await _FORMS[form](rest, context)


REFERENCE_COMMAND = Command(
    "reference",
    "show the fixed values that are in every prompt",
    _LISTED_FORMS,
    _run,
    destructive=lambda arguments: split_form(arguments)[0] in _CHANGES,
)
