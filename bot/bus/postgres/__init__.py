"""The message bus in PostgreSQL, for many processes: pgmq's queues, and tables for what goes out.

Rule 1: who holds the lease of a session's first message holds the session; its token is that message's
    number and how often it was read. Everything a holder does to its rows is fenced by the token.
Rule 2: what is asked of the database may be asked twice.
Rule 3: no connection is held while something is waited for.

``queries`` is the statements, ``holds`` the books of what is held, ``inbound`` what keeps them true,
``outbound`` the way to the channels, ``bus`` the two ends that others see.
"""

from bot.bus.postgres.bus import PostgresBus

__all__ = ["PostgresBus"]
