"""The message bus in PostgreSQL, for many processes: pgmq queues, and tables for outbound items.

Rule 1: the holder of the lease on a session's first message holds the session; its token is that
    message's number and read count. Every write to the session's rows is fenced by the token.
Rule 2: every statement may be repeated.
Rule 3: no connection is held while waiting.

``queries`` has the statements, ``held_session`` the state of one held session, ``held_sessions``
claims and renews them, ``row_handler`` turns rows into deliveries, ``outbound`` carries answers to
channels, ``codec`` encodes messages, and ``bus`` has the bus and its ports.
"""

from bot.bus.postgres.bus import PostgresBus

__all__ = ["PostgresBus"]
