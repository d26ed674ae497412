"""``tapebot tape repair``: repair damaged tape files from the parity data beside them."""

from __future__ import annotations

from bot.cli.tape import printable
from bot.core.errors import SettingsError
from bot.core.i18n import _, format_number
from bot.runtime.settings import Settings
from bot.tape.stores.folder_repair import repair_folder


def repair_tapes(settings: Settings, session: str | None, *, dry_run: bool) -> int:
    """Repair tapes; print each damaged file, and a summary.

    Returns:
        1 if anything is damaged afterwards, else 0.

    Raises:
        TapeLocked: A tapebot is running on the tapes.
        TapeNotFound: There is no such tape.
        SettingsError: The tapes are not in files of this machine.
    """
    if settings.database_url is not None or settings.tape_store != "file":
        raise SettingsError(
            _(
                "only tapes in files on this machine can be repaired, but the settings name another "
                "store"
            )
        )
    report = repair_folder(
        settings.home / "tapes", settings.workspace_id or "", session, dry_run=dry_run
    )
    done = _("can be repaired") if dry_run else _("repaired, byte for byte")
    for file in report.damaged:
        outcome = done if file.mendable else _("cannot be repaired, left unchanged")
        print(printable(f"{file.name}: {file.what}; {outcome}").replace("\n", " "))
    mendable = sum(file.mendable for file in report.damaged)
    counts = {
        "tapes": report.tapes,
        "damaged": format_number(len(report.damaged)),
        "mendable": format_number(mendable),
    }
    if not report.damaged:
        print(_("tapes: {tapes}; nothing to repair", **counts))
    elif dry_run:
        print(_("tapes: {tapes}; damaged files: {damaged}, can be repaired: {mendable}", **counts))
    else:
        print(_("tapes: {tapes}; damaged files: {damaged}, repaired: {mendable}", **counts))
    return int(len(report.damaged) > (0 if dry_run else mendable))
