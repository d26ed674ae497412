"""``tapebot tape verify``: whether the tapes hold what was written to them."""

from __future__ import annotations

from bot.cli.tape import printable
from bot.errors import SettingsError
from bot.settings import Settings
from bot.tape.stores.examine import examine


def verify(settings: Settings, session: str | None) -> int:
    """Check the tapes, also beside a running tapebot; print what is wrong, a line each, and a summary.

    Args:
        settings: Say where the tapes are.
        session: Only this one; None for all.

    Returns:
        1 where anything is wrong, else 0.

    Raises:
        TapeNotFound: There is no such tape.
        SettingsError: The tapes are not in files here.
    """
    if settings.tape_store != "file":
        raise SettingsError(
            "only tapes in files of this machine can be checked, and TAPEBOT_TAPE_STORE says that they "
            "are elsewhere; those of a tape server are checked where it runs"
        )
    report = examine(settings.home / "tapes", settings.workspace_id or "", session)
    for problem in report.problems:
        print(printable(str(problem)).replace("\n", " "))
    checked = f"tapes: {report.tapes}, files: {report.files}, entries checked: {report.entries:,}"
    found = len(report.problems)
    print(f"{checked}; {f'problems: {found:,}' if found else 'nothing is wrong'}")
    return 1 if found else 0
