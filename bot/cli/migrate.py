"""``tapebot migrate``: copy everything in a home from files to the database, or back."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from pydantic import SecretStr

from bot.cli.tape import printable
from bot.core.errors import SettingsError, TapeLocked, TapeNotFound
from bot.core.i18n import N_, _, ngettext
from bot.runtime.app.database_services import open_database_services
from bot.runtime.settings import Settings
from bot.transfer.file_home import FileHome
from bot.transfer.migration import Migration

if TYPE_CHECKING:
    from bot.transfer.database_home import DatabaseHome

_WORDS = {
    "there": N_("there"),
    "would move": N_("would move"),
    "moved": N_("moved"),
    "differs": N_("differs"),
    "note": N_("note"),
}
"""What happened to an item, as a person reads it."""


def migrate(settings: Settings, source: str, target: str, *, dry_run: bool = False) -> int:
    """Copy everything, compare both sides, and print the outcome of each item.

    Returns:
        1 if the target holds something that differs; then nothing was copied. Else 0.

    Raises:
        SettingsError: No database is set, both places are the same, or tapes are kept elsewhere.
        TapeLocked: A tapebot runs on the files or on the database.
        TapeNotFound: The home holds nothing.
        DatabaseError: The database cannot be reached, or has another version.
        TapeError: Something cannot be read or written; running the command again continues.
    """
    if source == target:
        raise SettingsError(
            _(
                "from {source} to {target}: allowed: tapebot migrate files postgres, and tapebot "
                "migrate postgres files",
                source=source,
                target=target,
            )
        )
    if settings.database_url is None:
        raise SettingsError(
            _(
                "TAPEBOT_DATABASE_URL: not set, but the migration needs a database; allowed: "
                "postgresql://user:password@host:port/name"
            )
        )
    if settings.tape_store != "file":
        raise SettingsError(
            _(
                "TAPEBOT_TAPE_STORE: given {tape_store!r}; only tapes in files on this machine can "
                "be migrated; unset it, or run this where the files are",
                tape_store=settings.tape_store,
            )
        )
    moved = anyio.run(_migrate, settings, source == "files", dry_run)
    if moved.differing:
        _note(_differs(settings, target))
        return 1
    _conclude(settings, moved, target, dry_run=dry_run)
    return 0


async def _migrate(settings: Settings, to_database: bool, dry_run: bool) -> Migration:
    files = FileHome(settings.home, settings.workspace_id or "")
    if to_database and not await files.has_data():
        raise TapeNotFound(_("{home}: nothing to migrate", home=settings.home))
    async with _database(settings) as database, AsyncExitStack() as held:
        if not dry_run:
            await held.enter_async_context(_alone(files, database))
        source, target = (files, database) if to_database else (database, files)
        moved = Migration(source, target, _say, dry_run)
        await moved.run()
        if not dry_run and (busy := await database.users()):
            raise TapeLocked(
                _("a tapebot was started meanwhile ({busy}): stop it, and migrate again", busy=busy)
            )
        if not to_database and (answers := await database.count_pending_answers()):
            _note(
                ngettext(
                    "{n} answer was not yet delivered: answers to messages are shown again from the "
                    "tapes, notices are lost",
                    "{n} answers were not yet delivered: answers to messages are shown again from "
                    "the tapes, notices are lost",
                    answers,
                )
            )
    damaged = files.tapes.statistics()["damaged_lines"]
    if damaged:
        _note(
            ngettext(
                "{n} damaged line cannot be read and is not copied; `tapebot tape verify` lists it",
                "{n} damaged lines cannot be read and are not copied; `tapebot tape verify` lists "
                "them",
                damaged,
            )
        )
    if others := await anyio.to_thread.run_sync(files.others):
        _note(
            ngettext(
                "{n} tape of another workspace stays in {home}: migrate it with its "
                "TAPEBOT_WORKSPACE",
                "{n} tapes of other workspaces stay in {home}: migrate them with their "
                "TAPEBOT_WORKSPACE",
                others,
                home=settings.home,
            )
        )
    return moved


@asynccontextmanager
async def _database(settings: Settings) -> AsyncIterator[DatabaseHome]:
    assert settings.database_url is not None
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import make_conninfo

        from bot.transfer.database_home import APPLICATION_NAME, DatabaseHome
    except ImportError as error:
        raise SettingsError(
            _(
                "TAPEBOT_DATABASE_URL: needs {name}: pip install 'tapebot[postgres]'",
                name=error.name,
            )
        ) from error
    url = settings.database_url.get_secret_value()
    try:
        # These connections must not be mistaken for those of a running tapebot.
        named = make_conninfo(url, application_name=APPLICATION_NAME)
    except ProgrammingError:
        named = url
    renamed = settings.model_copy(update={"database_url": SecretStr(named)})
    async with open_database_services(renamed) as shared:
        assert shared is not None
        yield DatabaseHome(shared.database, shared.wakeups, settings.workspace_id or "")


@asynccontextmanager
async def _alone(files: FileHome, database: DatabaseHome) -> AsyncIterator[None]:
    """Lock both places, so that no tapebot and no other migration runs on them."""
    with files.lock():
        async with database.lock():
            yield


def _say(word: str, text: str) -> None:
    print(f"{_(_WORDS.get(word, word))}\t{printable(text)}", flush=True)


def _note(text: str) -> None:
    print(_("note\t{problem}", problem=printable(text)), file=sys.stderr, flush=True)


def _differs(settings: Settings, target: str) -> str:
    if target == "files":
        return _(
            "nothing was copied. {home} contains other data: move it away (for example: mv "
            "'{home}' '{home}.before'), or set another TAPEBOT_HOME",
            home=settings.home,
        )
    return _(
        "nothing was copied. The database contains other data under these names: set "
        "TAPEBOT_DATABASE_URL to an empty one, set up with `tapebot db create`"
    )


def _conclude(settings: Settings, moved: Migration, target: str, *, dry_run: bool) -> None:
    if dry_run:
        print(
            ngettext(
                "nothing was written; {n} tape is already there and identical",
                "nothing was written; {n} tapes are already there and identical",
                moved.tapes,
            )
        )
        return
    print(
        _(
            "{tapes}, {entries}: identical in both places, SHA-256 {digest}",
            tapes=ngettext("{n} tape", "{n} tapes", moved.tapes),
            entries=ngettext("{n} entry", "{n} entries", moved.entries),
            digest=moved.digest,
        )
    )
    home = settings.home
    if target == "postgres":
        print(
            _(
                "The files in {home} are unchanged. tapebot uses the database while "
                "TAPEBOT_DATABASE_URL is set. To return to these files, unset it; to take newer "
                "messages along, move the files away first, and run: tapebot migrate postgres files. "
                "Exports and the channels' own files stay in the home folder.",
                home=home,
            )
        )
    else:
        print(
            _(
                "The database is unchanged. tapebot uses the files in {home} once "
                "TAPEBOT_DATABASE_URL is unset. To return to the database, set it again.",
                home=home,
            )
        )
