"""The message bus in PostgreSQL, for many processes: one table of inbound rows, and tables for outbound items.

Rule 1: who reads the first row of a session, its head, holds the session until the row's lease ends,
    which it renews. The row's id and read count are the fencing token, which every write to the
    session's rows must show.
Rule 2: every statement may be repeated.
Rule 3: no connection is held while waiting.
Rule 4: what arrives in a held session wakes its holder alone, by a topic of its own; what arrives in
    a free one wakes every worker. Wake-ups may be lost: all sessions are polled at times.

``queries`` has the statements, ``held_session`` the state of one held session, ``held_sessions``
claims and renews them, ``row_handler`` turns rows into received messages, ``outbound`` carries
answers to channels, ``codec`` encodes messages, and ``bus`` has the bus and its ports. The functions
are in ``bot/core/database/schema.sql``.
"""

from bot.bus.postgres.bus import PostgresBus

__all__ = [
    "PostgresBus",
    "codec",
]
