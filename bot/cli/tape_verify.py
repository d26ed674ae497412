"""``tapebot tape verify``: check that tapes hold what was written to them."""

from __future__ import annotations

import anyio

from bot.cli.tape import printable
from bot.core.errors import SettingsError
from bot.core.i18n import _, format_number
from bot.runtime.app.tape_stores import open_tape_store
from bot.runtime.settings import Settings
from bot.tape.stores.folder_verification import verify_folder
from bot.transfer.tape_verification import verify_tape


def verify(settings: Settings, session: str | None) -> int:
    """Check tapes, also while tapebot runs; print each problem and a summary; return 1 for any."""
    if settings.database_url is not None:
        return anyio.run(_verify_shared, settings, session)
    if settings.tape_store != "file":
        raise SettingsError(
            _(
                "only tapes in files on this machine can be checked, but TAPEBOT_TAPE_STORE names "
                "another store; check a tape server's tapes where it runs"
            )
        )
    report = verify_folder(settings.home / "tapes", settings.workspace_id or "", session)
    for problem in report.problems:
        _say(str(problem))
    _conclude(
        _("tapes: {tapes}, files: {files}", tapes=report.tapes, files=report.files),
        report.entries,
        len(report.problems),
    )
    return 1 if report.problems else 0


async def _verify_shared(settings: Settings, session: str | None) -> int:
    entries = found = 0
    async with open_tape_store(settings, read_only=True) as store:
        names = await store.list_tapes() if session is None else [session]
        for name in names:
            check = await verify_tape(store, name)
            for problem in check.problems:
                _say(f"{name}: {problem}")
            entries, found = entries + check.entries, found + len(check.problems)
    _conclude(_("tapes: {tapes}", tapes=len(names)), entries, found)
    return 1 if found else 0


def _say(text: str) -> None:
    print(printable(text).replace("\n", " "))


def _conclude(seen: str, entries: int, found: int) -> None:
    counts = {"seen": seen, "entries": format_number(entries), "found": format_number(found)}
    if found:
        print(_("{seen}, entries checked: {entries}; problems: {found}", **counts))
    else:
        print(_("{seen}, entries checked: {entries}; no problems", **counts))
