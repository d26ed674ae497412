"""``tapebot import chatgpt`` and others: import a person's conversations with another assistant."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio

from bot.bus import Address
from bot.cli.tape import printable
from bot.core.clock import SystemClock
from bot.core.errors import InvalidInbound, SettingsError, TapeNotFound
from bot.core.i18n import _, ngettext
from bot.memory.records.imports import ASSISTANTS
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.transfer.import_writer import STATUS_WORDS, ImportResult, ImportWriter
from bot.transfer.imported import Reading

_TOLD = 20
_PROGRESS = 500
CONSOLE_PERSON = "console:local"


def import_assistant(
    settings: Settings, bot: str, path: Path, *, person: str | None = None, dry_run: bool = False
) -> int:
    """Import another assistant's conversations for a person; return 1 if any was refused.

    Raises:
        TapeLocked: A tapebot is running.
        TapeNotFound: There is nothing to import at the path.
        SettingsError: ``person`` is no identity, or tapes are kept in memory only.
        TapeWriteError: The store refused the write; what was printed before is done.
    """
    check_importable(settings, path)
    reading = Reading(bot, _identity(person or CONSOLE_PERSON), ZoneInfo(settings.timezone))
    count = 0

    def tell(result: ImportResult) -> None:
        nonlocal count
        if result.status in ("changed", "refused"):
            count += 1
            _print_result(result, count)
        if (done := reading.statuses.total()) % _PROGRESS == 0:
            told = ngettext("{n} conversation", "{n} conversations", done)
            print(f"... {told}", file=sys.stderr, flush=True)

    refused = anyio.run(write_imported, settings, path, reading, dry_run, tell)
    print_problems(reading)
    if not reading.statuses and not reading.memory:
        raise TapeNotFound(
            _(
                "{path}: found nothing to import from {assistant}",
                path=path,
                assistant=ASSISTANTS[bot],
            )
        )
    _print_summary(reading, dry_run=dry_run)
    return 1 if refused else 0


async def write_imported(
    settings: Settings,
    path: Path,
    reading: Reading,
    dry_run: bool,
    tell: Callable[[ImportResult], None],
) -> bool:
    """Run an import, telling each outcome; return whether any conversation was refused."""
    refused = False
    async with open_tape_store(settings, read_only=dry_run) as store:
        writer = ImportWriter(store, SystemClock(), reading, settings.retention_days, dry_run)
        results = writer.run(path)
        async with aclosing(results):
            async for result in results:
                refused |= result.status == "refused"
                tell(result)
    return refused


def check_importable(settings: Settings, path: Path) -> None:
    """Check that there is something at a path, and that an import of it lasts.

    Raises:
        TapeNotFound: There is nothing.
        SettingsError: Tapes are kept in memory only.
    """
    if settings.tape_store == "memory" and settings.database_url is None:
        raise SettingsError(
            _("TAPEBOT_TAPE_STORE: an import into memory is lost when the command ends")
        )
    if not path.exists():
        raise TapeNotFound(_("{path}: there is no such file or folder", path=path))


def _identity(person: str) -> str:
    try:
        address = Address.parse(person)
    except InvalidInbound as error:
        raise SettingsError(
            _("{person!r} is not a person such as telegram:42", person=person)
        ) from error
    if address.topic is not None or address.channel in ASSISTANTS:
        raise SettingsError(_("{person!r} is not a person such as telegram:42", person=person))
    return address.session


def _print_result(result: ImportResult, told: int) -> None:
    if told <= _TOLD:
        text = f"{_(STATUS_WORDS[result.status])}\t{printable(result.session)}: {printable(result.text)}"
        print(text, file=sys.stderr, flush=True)
    elif told == _TOLD + 1:
        print(_("...\tand more"), file=sys.stderr)


def print_problems(reading: Reading) -> None:
    """Print the first of what could not be read."""
    for problem in reading.problems:
        print(_("note\t{problem}", problem=printable(problem)), file=sys.stderr)
    if (more := reading.problem_count - len(reading.problems)) > 0:
        print(_("note\tand {more} more", more=more), file=sys.stderr)


def _print_summary(reading: Reading, *, dry_run: bool) -> None:
    roles = reading.messages
    assistant = ASSISTANTS[reading.bot]
    told = ngettext(
        "found\t{n} conversation with {assistant}",
        "found\t{n} conversations with {assistant}",
        reading.statuses.total(),
        assistant=assistant,
    )
    if reading.since:
        since, until = reading.since[:10], reading.until[:10]
        told = _("{told}, {since} to {until}", told=told, since=since, until=until)
    print(told)
    print(
        _(
            "messages\t{user} of the person, {assistant} of the assistant",
            user=roles["user"],
            assistant=roles["assistant"],
        )
    )
    if reading.hidden:
        whys = ", ".join(f"{count} {_(why)}" for why, count in reading.hidden.most_common())
        print(_("left out\t{count}: {whys}", count=reading.hidden.total(), whys=whys))
    if reading.skipped:
        print(
            ngettext(
                "skipped\t{n} conversation without a visible message",
                "skipped\t{n} conversations without a visible message",
                reading.skipped,
            )
        )
    _print_statuses(reading.statuses, dry_run=dry_run)
    _print_memory(reading, dry_run=dry_run)


def _print_statuses(statuses: Mapping[str, int], *, dry_run: bool) -> None:
    imported = statuses["imported"]
    if dry_run:
        told = ngettext(
            "would import\t{n} conversation", "would import\t{n} conversations", imported
        )
    else:
        told = ngettext("imported\t{n} conversation", "imported\t{n} conversations", imported)
    print(told)
    if known := statuses["known"]:
        told = ngettext(
            "known\t{n} conversation imported already",
            "known\t{n} conversations imported already",
            known,
        )
        print(told)
    if changed := statuses["changed"]:
        told = ngettext(
            "changed\t{n} conversation not the same as when imported; left as imported",
            "changed\t{n} conversations not the same as when imported; left as imported",
            changed,
        )
        print(told)
    if refused := statuses["refused"]:
        told = ngettext(
            "refused\t{n} conversation refused", "refused\t{n} conversations refused", refused
        )
        print(told)


def _print_memory(reading: Reading, *, dry_run: bool) -> None:
    lines = list(reading.memory.items())
    if lines and dry_run:
        told = ngettext(
            "memory\t{n} line would be proposed to {person}:",
            "memory\t{n} lines would be proposed to {person}:",
            len(lines),
            person=printable(reading.person),
        )
        print(told)
        for line, (subject, when) in lines[:_TOLD]:
            about = f"{subject}: " if subject else ""
            print(f"\t- {printable(about + line)[:200]} ({when[:10]})")
        if len(lines) > _TOLD:
            print(_("\tand {more} more", more=len(lines) - _TOLD))
    elif lines:
        told = ngettext("memory\t{n} line", "memory\t{n} lines", len(lines))
        pending = ngettext(
            "{n} new fact in /memory pending",
            "{n} new facts in /memory pending",
            reading.proposed,
        )
        print(f"{told}: {pending}")
    if reading.more_memory:
        print(
            ngettext(
                "memory\t{n} more line not proposed: too many, or too long",
                "memory\t{n} more lines not proposed: too many, or too long",
                reading.more_memory,
            )
        )
    print(
        _(
            "next\tNothing is believed yet. As {person}, send /memory import to have the "
            "conversations read for facts.",
            person=printable(reading.person),
        )
    )
