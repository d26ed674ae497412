"""Store Discord read positions and space out shard logins in PostgreSQL.

A channel gets them in its ``ChannelContext``; it does not see the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bot.bus.read_positions import ReadPosition, ReadPositionStore
from bot.core.database.connections import Database
from bot.core.errors import BusError

_READ = "select place, last, server from tapebot.discord_mark where bot = %s"
_WRITE = """
with gone as (delete from tapebot.discord_mark where bot = %s and place = any(%s::bigint[]))
insert into tapebot.discord_mark as mark (bot, place, last, server)
    select %s, place, last, server
    from unnest(%s::bigint[], %s::bigint[], %s::bigint[]) as moved (place, last, server)
    on conflict (bot, place) do update set last = excluded.last where mark.last < excluded.last
"""


class PostgresReadPositions(ReadPositionStore):
    """The read positions of all shards of a bot.

    Args:
        database: The database, at this version's schema.
        bot: The channel's name.
    """

    def __init__(self, database: Database, bot: str) -> None:
        self._database = database
        self._bot = bot

    async def read(self) -> Iterable[ReadPosition]:
        """Return the read positions of all shards.

        Raises:
            BusError: The database cannot be reached.
        """
        rows = await _asked(self._database, _READ, [self._bot])
        return [(place, last, server) for place, last, server in rows]

    async def write(self, moved: Sequence[ReadPosition], dropped: Sequence[int]) -> None:
        """Store read positions, which never move back, and delete those of dropped channels.

        Raises:
            BusError: The database cannot be reached.
        """
        columns = [list(column) for column in zip(*moved, strict=True)] if moved else [[], [], []]
        await _asked(self._database, _WRITE, [self._bot, list(dropped), self._bot, *columns])


async def reserve_slot(database: Database, name: str, apart: float) -> float:
    """Reserve a name's next slot, ``apart`` seconds after the last; return the seconds until it.

    Raises:
        BusError: The database cannot be reached.
    """
    rows = await _asked(database, "select tapebot.turn_reserve(%s, %s)", [name, apart])
    return float(rows[0][0])


async def _asked(database: Database, sql: str, values: Sequence[Any]) -> list[Any]:
    with database.errors_as(BusError):
        return await database.fetch(sql, values)
