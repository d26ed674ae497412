"""Checks of ``tapebot doctor`` on the shared database."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.bus.access.access_list import AccessList
from bot.cli.check_result import CheckResult
from bot.core.errors import TapebotError
from bot.core.i18n import _, ngettext
from bot.runtime.app.database_services import open_database
from bot.runtime.settings import Settings

if TYPE_CHECKING:
    from bot.core.database.connections import Database

_OLDEST = 150_000
"""PostgreSQL 15, as in ``server_version_num``."""

_PATIENCE = 5.0
"""Seconds within which it must answer."""

_SKEW = 5.0
"""Seconds that two clocks may differ: messages dated by one are ordered beside the other's."""

_ASKED = """
select current_setting('server_version_num')::int, current_setting('server_version'), clock_timestamp(),
    current_setting('synchronous_commit'), current_setting('fsync'),
    (select count(*) from tapebot.lease where until > clock_timestamp())
"""
_ASKED_EMPTY = _ASKED.replace(
    "(select count(*) from tapebot.lease where until > clock_timestamp())", "0"
)


@dataclass(frozen=True, slots=True)
class _Server:
    """The state of a database server.

    Attributes:
        number: The version as in ``server_version_num``.
        version: The version for people.
        ahead: Seconds by which its clock is ahead of this machine's.
        unsafe: Settings with which committed data may be lost.
        leases: How many leases are held.
    """

    number: int
    version: str
    ahead: float
    unsafe: list[str]
    leases: int


async def check_database(settings: Settings) -> tuple[list[CheckResult], AccessList | TapebotError]:
    """Check the configured database; change nothing in it.

    Returns:
        The results, and the access list or the error that prevented reading it.
    """
    try:
        async with open_database(settings, retry_seconds=_PATIENCE) as database:
            check_results, whole = await _look(database)
            if not whole:
                return check_results, TapebotError(_("unknown: see the database"))
            from bot.bus.access.postgres_store import PostgresAccessStore

            return check_results, await _roster(PostgresAccessStore(database).peek())
    except TapebotError as error:
        remedy = _("Check that it runs, and correct TAPEBOT_DATABASE_URL.")
        return [CheckResult("database", "bad", str(error), remedy)], error


async def _roster(asked: Awaitable[AccessList]) -> AccessList | TapebotError:
    try:
        return await asked
    except TapebotError as error:
        return error


async def _look(database: Database) -> tuple[list[CheckResult], bool]:
    """Return the results, and whether the tables exist."""
    from bot.core.database.schema import has_schema

    there = await has_schema(database)
    server = await _asked(database, empty=not there)
    check_results = list(_server(database.display_address, server))
    if not there:
        text = _("there are no tables yet")
        check_results.append(CheckResult("database", "bad", text, "tapebot db create"))
        return check_results, False
    text = ngettext(
        "its tables have this version; {n} lease held by running processes",
        "its tables have this version; {n} leases held by running processes",
        server.leases,
    )
    check_results.append(CheckResult("database", "ok", text))
    return check_results, True


async def _asked(database: Database, *, empty: bool) -> _Server:
    before = time.time()
    rows = await database.fetch(_ASKED_EMPTY if empty else _ASKED)
    after = time.time()
    number, version, asked_at, commit, fsync, leases = rows[0]
    # Only a difference beyond the query's own duration counts.
    now = asked_at.timestamp()
    ahead = now - after if now > after else min(0.0, now - before)
    unsafe = [f"synchronous_commit = {commit}"] if commit in ("off", "local") else []
    unsafe += ["fsync = off"] if fsync == "off" else []
    return _Server(number, version, ahead, unsafe, leases)


def _server(place: str, server: _Server) -> Iterator[CheckResult]:
    if server.number < _OLDEST:
        text = _("{place}: PostgreSQL {version} is too old", place=place, version=server.version)
        yield CheckResult("database", "bad", text, _("Use PostgreSQL 15 or newer."))
    else:
        yield CheckResult(
            "database",
            "ok",
            _("{place}: PostgreSQL {version} answers", place=place, version=server.version),
        )
    if abs(server.ahead) >= _SKEW:
        seconds = f"{abs(server.ahead):.0f}"
        text = (
            _("its clock is {seconds} seconds ahead of this machine's", seconds=seconds)
            if server.ahead > 0
            else _("its clock is {seconds} seconds behind this machine's", seconds=seconds)
        )
        yield CheckResult("database", "warn", text, _("Synchronise both clocks (NTP)."))
    if server.unsafe:
        text = _("it may lose confirmed writes ({unsafe})", unsafe=", ".join(server.unsafe))
        yield CheckResult("database", "warn", text, _("Set them to PostgreSQL's defaults."))
