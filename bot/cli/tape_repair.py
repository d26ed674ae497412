"""``tapebot tape repair``: mend damaged files of tapes from what was written beside them for that."""

from __future__ import annotations

from bot.cli.tape import printable
from bot.core.errors import SettingsError
from bot.runtime.settings import Settings
from bot.tape.stores.folder_repair import repair_folder


def repair_tapes(settings: Settings, session: str | None, *, dry_run: bool) -> int:
    """Mend tapes; print what is wrong, a line for each file, and a summary.

    Args:
        settings: Say where the tapes are.
        session: Only this one; None for all.
        dry_run: Only say what is wrong and what can be mended, also beside a running tapebot.

    Returns:
        1 where anything is damaged afterwards, else 0.

    Raises:
        TapeLocked: A tapebot runs on the tapes.
        TapeNotFound: There is no such tape.
        SettingsError: The tapes are not in files here.
    """
    if settings.database_url is not None or settings.tape_store != "file":
        raise SettingsError(
            "only tapes in files of this machine can be repaired, and the settings say that they are "
            "elsewhere"
        )
    report = repair_folder(
        settings.home / "tapes", settings.workspace_id or "", session, dry_run=dry_run
    )
    done = "can be mended" if dry_run else "mended, byte for byte"
    for file in report.damaged:
        outcome = done if file.mendable else "cannot be mended, and stays as it is"
        print(printable(f"{file.name}: {file.what}; {outcome}").replace("\n", " "))
    mendable = sum(file.mendable for file in report.damaged)
    verb = "can be mended" if dry_run else "mended"
    found = f"damaged files: {len(report.damaged):,}, {verb}: {mendable:,}"
    print(f"tapes: {report.tapes}; {found if report.damaged else 'nothing is to be mended'}")
    return int(len(report.damaged) > (0 if dry_run else mendable))
