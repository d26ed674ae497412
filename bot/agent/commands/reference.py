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

from bot.agent.commands.memory.fact_text import author_name, shorten
from bot.agent.commands.memory.permissions import OWNER_ONLY_TEXT
from bot.agent.commands.pagination import paginate, split_page_number, usable_buttons
from bot.agent.commands.parser import split_form, split_word
from bot.agent.commands.registry import Command, CommandContext, CommandReply, idempotency_key
from bot.agent.texts import bold, joined, local_time
from bot.bus import Button
from bot.core.clock import format_time
from bot.core.i18n import N_, _, ngettext
from bot.core.patterns import LazyPattern
from bot.core.text import escape_markdown
from bot.memory.gate.reference_values import check_key, check_value, parse_value
from bot.memory.gate.write_result import WriteResult
from bot.memory.records.compartment_records import SharedReference
from bot.memory.records.episodes import episode_id
from bot.memory.session.bus.shared_reference import SharedReferenceStore, current_references

_CHANGES = frozenset({"set", "rollback", "remove", "share", "unshare"})
_LISTED = 120
_VERSIONS = 20
_BUTTONS = 3
_QUOTED = LazyPattern(r'"([^"]+)"\s*(.*)', re.DOTALL)
_NOTHING = N_(
    "Nothing yet. What you set here is in each of your prompts, word for word, until you change it. "
    "For example: `/reference set deadline Friday`. `north_stars` and `priorities` are for your "
    "main goals: `/reference set priorities thesis; family`."
)
_HINT = N_("`/reference KEY` shows a whole value, `/reference versions KEY` its versions.")


async def _list(page: int, context: CommandContext) -> CommandReply:
    parts = list(_lists(context))
    nothing = "\n".join([bold(_("Reference")), _(_NOTHING)])
    text = "\n\n".join([*parts, _(_HINT)]) if parts else nothing
    shown, buttons = paginate(text, page, "/reference page")
    return CommandReply(shown, buttons=buttons)


def _lists(context: CommandContext) -> Iterator[str]:
    memory = context.memory
    own, everybodys = (
        current_references(memory.home.compartments),
        current_references(memory.workspace.compartments),
    )
    if own:
        yield "\n".join([bold(_("Reference")), *map(_line, own)])
    if everybodys:
        yield "\n".join([bold(_("Shared with everyone")), *map(_line, everybodys)])


def _line(reference: SharedReference) -> str:
    line = f"{_label(reference)}: {escape_markdown(shorten(_told(reference.value), _LISTED))}"
    if not reference.stale:
        return line
    return _("{line} (its source is no longer valid)", line=line)


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
        parts += [
            f"{_label(own)}\n{escape_markdown(_told(own.value))}",
            escape_markdown(await bus.shared.cite(key)),
        ]
    if (everybodys := await bus.shared_workspace.get(key)) is not None:
        label = _("{label}, shared with everyone", label=_label(everybodys))
        parts.append(f"{label}\n{escape_markdown(_told(everybodys.value))}")
        parts.append(escape_markdown(await bus.shared_workspace.cite(key)))
        if context.author.role == "owner" and context.author.private:
            parts.append(_("Its source is {source}.", source=everybodys.source))
    if not parts:
        return CommandReply(await _missing(key, bus.shared))
    if own is not None and own.version > 1:
        command = f"`/reference versions {key}`"
        parts.append(_("{command} shows earlier versions.", command=command))
    text, buttons = paginate("\n".join(parts), page, f"/reference {key} page")
    return CommandReply(text, buttons=usable_buttons(buttons))


async def _missing(key: str, store: SharedReferenceStore) -> str:
    shown = shorten(key, _LISTED)
    if await store.list_versions(key):
        return _(
            "`{key}` has no value now; `/reference versions {key}` shows earlier versions.",
            key=shown,
        )
    return _("There is no `{key}`. `/reference` lists the keys.", key=shown)


async def _set(arguments: str, context: CommandContext) -> CommandReply:
    found = _QUOTED.fullmatch(arguments)
    key, text = found.groups() if found is not None else split_word(arguments)
    if not key or not text.strip():
        return CommandReply(
            _("Which key, and which value? For example: `/reference set deadline Friday`.")
        )
    value = check_value(check_key(key), parse_value(key, text))
    written = await context.memory.bus.write_to_shared(
        key, value, _heard(context), by="person", cause=idempotency_key(context)
    )
    if not written:
        return CommandReply(_elsewhere(written), zone_edit=context.memory.with_current_facts)
    told = _(
        "Set: {key} {version}: {value}",
        key=f"**{escape_markdown(key)}**",
        version=f"v{written.id}",
        value=escape_markdown(shorten(_told(value))),
    )
    return CommandReply(
        told, zone_edit=context.memory.with_current_facts, buttons=_back(key, int(written.id) - 1)
    )


def _heard(context: CommandContext) -> str:
    return episode_id(context.tape.name, context.command_entry.id)


def _elsewhere(written: WriteResult, *, shared: bool = False) -> str:
    """Return the reply to a write that the gate did not put into shared reference."""
    decision, reason = written.decision, written.decision.reason
    if written.is_assumption and shared:
        return _("Not shared, but noted for the active problem: {reason}.", reason=reason)
    if written.is_assumption:
        return _("Not set, but noted for the active problem: {reason}.", reason=reason)
    told = (
        _("Not shared: {reason}.", reason=reason)
        if shared
        else _("Not set: {reason}.", reason=reason)
    )
    return " ".join([told, _("It is on record.")]) if decision.approved else told


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
        left = len(numbers) - _VERSIONS
        lines.append(ngettext("and {n} older one", "and {n} older ones", left))
    head = _("Versions of {key}", key=escape_markdown(key))
    text = "\n".join([f"**{head}**", *lines])
    shown, turning = paginate(text, page, f"/reference versions {key} page")
    back = [button for number in older[:_BUTTONS] for button in _back(key, number)]
    return CommandReply(shown, buttons=usable_buttons([*back, *turning]))


def _version(number: int, reference: SharedReference | None, context: CommandContext) -> str:
    version = f"v{number}"
    if reference is None:
        return _("{version}: erased", version=version)
    when = local_time(format_time(reference.updated_at), context.zone.timezone)
    if reference.value is None:
        return _("{version}, {time}: removed", version=version, time=when)
    value = escape_markdown(shorten(_told(reference.value), _LISTED))
    head = [version, when]
    if reference.updated_by == "rollback":
        head.append(_("rolled back"))
    elif reference.updated_by != "person":
        head.append(_("by {whom}", whom=author_name(reference.updated_by)))
    return f"{joined(head)}: {value}"


async def _rollback(arguments: str, context: CommandContext) -> CommandReply:
    key, _sep, number = arguments.rpartition(" ")
    key, number = key.strip(), number.removeprefix("v")
    if not key or not number.isdecimal() or len(number) > 9:
        return CommandReply(_("To which version? For example: `/reference rollback deadline 2`."))
    store, to = context.memory.bus.shared, int(number)
    if not await store.rollback(key, to, cause=idempotency_key(context)):
        return CommandReply(
            _(
                "There is no value to restore in version {number} of `{key}`, or it is the current one. "
                "`/reference versions {key}` lists them.",
                number=to,
                key=shorten(key, _LISTED),
            )
        )
    reference = await store.get(key)
    told = _("Already done.")
    if reference is not None:
        told = _("As in version {number} again: {line}", number=to, line=_line(reference))
    return CommandReply(told, zone_edit=context.memory.with_current_facts)


async def _remove(key: str, context: CommandContext) -> CommandReply:
    store = context.memory.bus.shared
    before = await store.get(key)
    if not await store.remove(key, idempotency_key(context)):
        if await context.memory.bus.shared_workspace.get(key) is not None:
            command = f"`/reference unshare {key}`"
            return CommandReply(_("It is shared with everyone. Send {command}.", command=command))
        return CommandReply(await _missing(key, store))
    back = _back(key, before.version, _("Undo")) if before is not None else ()
    told = _(
        "Removed: `{key}`. Its versions stay on the tape; `/reference versions {key}` shows them.",
        key=key,
    )
    return CommandReply(told, zone_edit=context.memory.with_current_facts, buttons=back)


async def _share(key: str, context: CommandContext) -> CommandReply:
    if context.author.role != "owner":
        return CommandReply(_(OWNER_ONLY_TEXT))
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
            _elsewhere(written, shared=True), zone_edit=context.memory.with_current_facts
        )
    return CommandReply(
        _(
            "Shared: {line}\nEveryone who uses this bot will see it, in every chat. {command} stops it.",
            line=_line(reference),
            command=f"`/reference unshare {key}`",
        ),
        zone_edit=context.memory.with_current_facts,
    )


async def _unshare(key: str, context: CommandContext) -> CommandReply:
    if context.author.role != "owner":
        return CommandReply(_(OWNER_ONLY_TEXT))
    store = context.memory.bus.shared_workspace
    if not await store.remove(key, idempotency_key(context)):
        return CommandReply(_("`{key}` is not shared.", key=shorten(key, _LISTED)))
    told = _("No longer shared: `{key}`.", key=key)
    return CommandReply(told, zone_edit=context.memory.with_current_facts)


def _back(key: str, version: int, label: str = "") -> tuple[Button, ...]:
    if version < 1:
        return ()
    told = label or _("Back to {version}", version=f"v{version}")
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
    ("KEY", N_("show a whole value and its source")),
    ("set KEY VALUE", N_("set a value: text, a JSON list or object; priorities: `one; two`")),
    ("versions KEY", N_("show its versions")),
    ("rollback KEY N", N_("restore version N")),
    ("remove KEY", N_("remove it")),
    ("share KEY", N_("share it with everyone who uses this bot; `unshare KEY` stops it")),
)


async def _run(arguments: str, context: CommandContext) -> CommandReply:
    form, rest = split_form(arguments)
    if form not in _FORMS:
        key, page = split_page_number(arguments)
        return await (_show(key, context, page) if key else _list(page, context))
    if not rest:
        which = _("Which one? `/reference` lists them.")
        return CommandReply(f"{which}\n\n{REFERENCE_COMMAND.usage}")
    return await _FORMS[form](rest, context)


REFERENCE_COMMAND = Command(
    "reference",
    N_("show the fixed values that are in every prompt"),
    _LISTED_FORMS,
    _run,
    destructive=lambda arguments: split_form(arguments)[0] in _CHANGES,
    right="site",
    reads=("", "versions"),
)
