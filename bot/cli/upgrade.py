"""``tapebot upgrade --check``: tell what a newer version changes, and whether this home is ready for it.

Rule 1: the package index is asked only here, because a person asked.
Rule 2: nothing is installed, and no code of the new version runs.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

import anyio

from bot.cli.check_result import CheckResult
from bot.cli.doctor import exit_code, report
from bot.cli.newest_release import Release, fetch_newest, is_newer, read_migrations
from bot.cli.service import service_file
from bot.core import database
from bot.core.errors import TapebotError
from bot.core.i18n import _, format_number
from bot.core.installation import PACKAGE, this_installation
from bot.runtime.app.database_services import open_database
from bot.runtime.settings import Settings

_RECENT = timedelta(days=1)
_LONGEST_NEWS = 40  # lines
_DATABASE_SECONDS = 5.0


def check_upgrade(settings: Settings) -> int:
    """Print what is installed, what is new, what stands in the way, and the command that upgrades.

    Args:
        settings: They locate the home, the database and the backups.

    Returns:
        1 if the new version cannot open the data, else 0.

    Raises:
        TapebotError: The package index cannot be asked.
    """
    installed = version(PACKAGE)
    installation = this_installation()
    print(
        _(
            "installed: tapebot {version} with Python {python}, by {installer}",
            version=installed,
            python=platform.python_version(),
            installer=installation.kind,
        ),
        flush=True,
    )
    with fetch_newest() as release:
        if not is_newer(release.version, installed):
            print(_("newest: {version}. There is nothing to do.", version=release.version))
            return 0
        print(_("newest: {version}", version=release.version))
        print("\n" + _news(release, installed) + "\n")
        findings = [*_data(settings, release, installed), _backup(settings)]
    print(report(findings))
    if exit_code(findings):
        return 1
    print("\n" + _("Upgrade with:") + "\n")
    for command in _commands(settings, installation.upgrade_command()):
        print(f"    {command}")
    return 0


def _news(release: Release, installed: str) -> str:
    lines = release.changes_since(installed).splitlines()
    if not lines:
        return _("Its changelog says nothing about this version.")
    left = len(lines) - _LONGEST_NEWS
    if left > 0:
        lines = [*lines[:_LONGEST_NEWS], _("... and {n} more lines.", n=format_number(left))]
    return "\n".join(lines)


def _data(settings: Settings, release: Release, installed: str) -> Iterator[CheckResult]:
    """Check whether the new version opens what this one wrote."""
    since = release.homes_since
    if since is None or is_newer(since, installed):
        oldest = since or _("an unknown version")
        text = _("{new} opens homes since {oldest}", new=release.version, oldest=oldest)
        remedy = _("Upgrade to the versions between them first, one after the other.")
        yield CheckResult("home", "bad", text, remedy)
    elif settings.home.exists():
        text = _("{new} opens {home}", new=release.version, home=settings.home)
        yield CheckResult("home", "ok", text)
    else:
        yield CheckResult("home", "ok", _("{home} does not exist yet", home=settings.home))
    if settings.database_url is not None:
        yield _database(settings, release)


def _database(settings: Settings, release: Release) -> CheckResult:
    here = read_migrations(Path(database.__file__).parent / "migrations")
    if any(release.migrations.get(name) != sql for name, sql in here.items()):
        text = _("{new} does not know the tables of this version", new=release.version)
        return CheckResult("database", "bad", text, _("Keep this version."))
    try:
        anyio.run(_see_database, settings)
    except TapebotError as error:
        return CheckResult("database", "bad", str(error), _("Mend this before the upgrade."))
    if steps := len(release.migrations) - len(here):
        text = _("{new} adds to its tables: {n} steps", new=release.version, n=format_number(steps))
        remedy = _("Run `tapebot db migrate` after the upgrade, before the first start.")
        return CheckResult("database", "warn", text, remedy)
    return CheckResult("database", "ok", _("its tables stay as they are"))


async def _see_database(settings: Settings) -> None:
    async with open_database(settings, retry_seconds=_DATABASE_SECONDS) as opened:
        from bot.core.database.migrations import check_schema_version

        await check_schema_version(opened)


def _backup(settings: Settings) -> CheckResult:
    if settings.database_url is not None:
        text = _("the database's backups are not known here")
        return CheckResult("backup", "warn", text, _("Make sure that there is a recent one."))
    remedy = _("Run `tapebot backup --to FOLDER` first.")
    if settings.backup_to is None:
        return CheckResult("backup", "warn", _("TAPEBOT_BACKUP_TO names no folder"), remedy)
    remedy = _("Run `tapebot backup` first.")
    newest = _newest_backup(settings.backup_to.expanduser())
    if newest is None:
        text = _("there is none in {folder}", folder=settings.backup_to)
        return CheckResult("backup", "warn", text, remedy)
    name, made = newest
    if datetime.now(UTC) - made > _RECENT:
        text = _("{backup} is older than a day", backup=name)
        return CheckResult("backup", "warn", text, remedy)
    return CheckResult("backup", "ok", name)


def _newest_backup(folder: Path) -> tuple[str, datetime] | None:
    """Return a backup's name and time; None if there is none, or no extra that makes any."""
    try:
        from bot.transfer.backup import backup_time, newest_backup
    except ImportError:
        return None
    newest = newest_backup(folder)
    return None if newest is None else (newest.name, backup_time(newest))


def _commands(settings: Settings, upgrade: str) -> Iterator[str]:
    yield upgrade
    if settings.database_url is not None:
        yield "tapebot db migrate"
    yield "tapebot doctor"
    if service_file(settings) is not None:
        yield "tapebot service install"
