"""``tapebot import chatgpt`` and others: import a person's conversations with another assistant."""

from __future__ import annotations

import sys
from contextlib import aclosing
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio

from bot.bus import Address
from bot.cli.tape import printable
from bot.core.clock import SystemClock
from bot.core.errors import InvalidInbound, SettingsError, TapeNotFound
from bot.memory.records.imports import ASSISTANTS
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.transfer.assistant_import import AssistantImport, start_import
from bot.transfer.import_writer import ImportResult, ImportWriter

_TOLD = 20
_PROGRESS = 500
CONSOLE_PERSON = "console:local"


def import_assistant(
    settings: Settings, bot: str, path: Path, *, person: str | None = None, dry_run: bool = False
) -> int:
    """Import another assistant's conversations for a person; return 1 if any was refused.

    Args:
        settings: The settings that locate the tapes and set the user's time zone.
        bot: The other assistant, such as ``chatgpt``.
        path: Its export or its home.
        person: The identity that they belong to, such as ``telegram:42``; None for the console's.
        dry_run: Only print what would be done.

    Raises:
        TapeLocked: A tapebot is running.
        TapeNotFound: There is nothing to import at the path.
        SettingsError: ``person`` is no identity, or tapes are kept in memory only.
        TapeWriteError: The store refused the write; what was printed before is done.
    """
    if settings.tape_store == "memory" and settings.database_url is None:
        raise SettingsError(
            "TAPEBOT_TAPE_STORE: an import into memory is lost when the command ends"
        )
    if not path.exists():
        raise TapeNotFound(f"{path}: there is no such file or folder")
    who = _identity(person or CONSOLE_PERSON)
    started = start_import(bot, path, who, ZoneInfo(settings.timezone))
    refused = anyio.run(_run, settings, started, dry_run)
    _print_problems(started)
    if not started.conversations and not started.reading.memory:
        raise TapeNotFound(f"{path}: found nothing to import from {ASSISTANTS[bot]}")
    _print_summary(started, dry_run=dry_run)
    return 1 if refused else 0


async def _run(settings: Settings, started: AssistantImport, dry_run: bool) -> int:
    """Run an import; return the number of refused conversations."""
    refused = told = 0
    async with open_tape_store(settings, read_only=dry_run) as store:
        writer = ImportWriter(store, SystemClock(), settings.retention_days, None, dry_run)
        results = started.run(writer)
        async with aclosing(results):
            async for result in results:
                refused += result.status == "refused"
                if result.status in ("changed", "refused"):
                    told += 1
                    _print_result(result, told)
                if started.conversations % _PROGRESS == 0:
                    print(f"... {started.conversations} conversations", file=sys.stderr, flush=True)
    return refused


def _identity(person: str) -> str:
    try:
        address = Address.parse(person)
    except InvalidInbound as error:
        raise SettingsError(f"{person!r} is not a person such as telegram:42") from error
    if address.topic is not None or address.channel in ASSISTANTS:
        raise SettingsError(f"{person!r} is not a person such as telegram:42")
    return address.session


def _print_result(result: ImportResult, told: int) -> None:
    if told <= _TOLD:
        text = f"{result.status}\t{printable(result.session)}: {printable(result.text)}"
        print(text, file=sys.stderr, flush=True)
    elif told == _TOLD + 1:
        print("...\tand more", file=sys.stderr)


def _print_problems(started: AssistantImport) -> None:
    reading = started.reading
    for problem in reading.problems:
        print(f"note\t{printable(problem)}", file=sys.stderr)
    if (more := reading.problem_count - len(reading.problems)) > 0:
        print(f"note\tand {more} more", file=sys.stderr)


def _print_summary(started: AssistantImport, *, dry_run: bool) -> None:
    reading, statuses, roles = started.reading, started.statuses, started.messages
    span = f", {started.since[:10]} to {started.until[:10]}" if started.since else ""
    told = _count(started.conversations, "conversation")
    print(f"found\t{told} with {ASSISTANTS[reading.bot]}{span}")
    print(f"messages\t{roles['user']} of the person, {roles['assistant']} of the assistant")
    if reading.hidden:
        whys = ", ".join(f"{count} {why}" for why, count in reading.hidden.most_common())
        print(f"left out\t{reading.hidden.total()}: {whys}")
    if reading.skipped:
        print(f"skipped\t{_count(reading.skipped, 'conversation')} without a visible message")
    done = "would import" if dry_run else "imported"
    print(f"{done}\t{_count(statuses['imported'], 'conversation')}")
    for status, told in (
        ("known", "imported already"),
        ("changed", "not the same as when imported; left as imported"),
        ("refused", "refused"),
    ):
        if statuses[status]:
            print(f"{status}\t{_count(statuses[status], 'conversation')} {told}")
    _print_memory(started, dry_run=dry_run)


def _print_memory(started: AssistantImport, *, dry_run: bool) -> None:
    reading = started.reading
    lines = list(reading.memory.values())
    if lines and dry_run:
        count = _count(len(lines), "line")
        print(f"memory\t{count} would be proposed to {printable(reading.person)}:")
        for line in lines[:_TOLD]:
            about = f"{line.subject}: " if line.subject else ""
            print(f"\t- {printable(about + line.text)[:200]} ({line.when[:10]})")
        if len(lines) > _TOLD:
            print(f"\tand {len(lines) - _TOLD} more")
    elif lines:
        count = _count(started.proposed, "new fact")
        print(f"memory\t{_count(len(lines), 'line')}: {count} in /memory pending")
    if reading.more_memory:
        count = _count(reading.more_memory, "more line")
        print(f"memory\t{count} not proposed: too many, or too long")
    print(
        "next\tNothing is believed yet. As "
        f"{printable(reading.person)}, send /memory import to have the conversations read for facts."
    )


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' * (number != 1)}"
