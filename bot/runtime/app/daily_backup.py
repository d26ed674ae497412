"""Make a backup each day, if a folder for backups is set."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import anyio.from_thread
import anyio.to_thread

from bot.core.clock import Clock
from bot.core.errors import BackupFailed, SettingsError
from bot.core.i18n import _
from bot.core.recurrence import Cron, next_occurrence
from bot.runtime.settings import Settings
from bot.transfer.backup import BackupResult, backup_time, create_backup, newest_backup
from bot.transfer.backup_key import BackupKey, passphrase_key, recipient_key

logger = logging.getLogger(__name__)

_LONGEST_SLEEP = 600.0
"""Seconds after which the wall clock is read again: it may have been set."""
_RETRY = timedelta(hours=1)


class DailyBackup:
    """Makes backups while the program runs; one that was missed is made at the next start."""

    def __init__(self, settings: Settings, to: Path, clock: Clock) -> None:
        self._settings = settings
        self._to = to
        self._clock = clock
        at = settings.backup_at
        self._rule = Cron(f"{at.minute} {at.hour} * * *")
        self._zone = ZoneInfo(settings.timezone)

    async def run(self) -> None:
        """Make a backup whenever one is due, until cancelled."""
        failed: datetime | None = None
        while True:
            due = await anyio.to_thread.run_sync(self.due)
            if failed is not None:
                due = max(due, failed + _RETRY)
            wait = (due - self._clock.now()).total_seconds()
            if wait > 0:
                await self._clock.sleep(min(wait, _LONGEST_SLEEP))
                continue
            try:
                made = await anyio.to_thread.run_sync(self.make)
            except (BackupFailed, SettingsError, OSError) as error:
                failed = self._clock.now()
                logger.error(  # noqa: TRY400 (the text says all; no trace)
                    "no backup was made, another attempt follows in an hour: %s", error
                )
            else:
                failed = None
                logger.info("backup %s: %d files", made.path.name, made.read.count)
                for problem in made.tapes.problems:
                    logger.error("a tape is damaged, also in the backup: %s", problem)

    def due(self) -> datetime:
        """Return when the next backup is due. Blocking."""
        try:
            newest = newest_backup(self._to)
        except OSError:
            # Making one says what is wrong with the folder.
            newest = None
        if newest is None:
            return self._clock.now()
        due = next_occurrence(self._rule, backup_time(newest), self._zone)
        assert due is not None
        return due

    def make(self) -> BackupResult:
        """Make one backup now, and remove old ones. Blocking, in a worker thread that may be cancelled.

        Raises:
            BackupFailed: It cannot be made, or does not read back.
            SettingsError: pyrage is not installed.
            OSError: A disk refused.
        """
        key = configured_key(self._settings)
        assert key is not None, "checked at the start"
        return create_backup(
            self._settings.home,
            self._to,
            key,
            self._clock.now().astimezone(UTC),
            keep=self._settings.backup_keep,
            # Whoever stops the program does not wait for the backup's end.
            beat=anyio.from_thread.check_cancelled,
        )


def configured_key(settings: Settings, recipients: Sequence[str] = ()) -> BackupKey | None:
    """Return a new key for a backup, as settings say; None if they say nothing.

    Raises:
        SettingsError: A public key is wrong, or pyrage is not installed.
    """
    if keys := (*recipients,) or settings.backup_recipients:
        return recipient_key(keys)
    if settings.backup_passphrase is not None:
        return passphrase_key(settings.backup_passphrase.get_secret_value())
    return None


def check_in_files(settings: Settings) -> None:
    """Raise unless all data is in files of this machine.

    Raises:
        SettingsError: It is in a database, in memory or at a tape server.
    """
    if settings.database_url is not None:
        raise SettingsError(
            _(
                "TAPEBOT_DATABASE_URL: the data is in PostgreSQL; back it up with pg_basebackup, as "
                "deploy/RUNBOOK.md tells"
            )
        )
    if settings.tape_store != "file":
        raise SettingsError(
            _("TAPEBOT_TAPE_STORE: make the backup where the files of the tapes are")
        )
