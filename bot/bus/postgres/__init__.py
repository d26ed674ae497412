"""The message bus in PostgreSQL, for many processes: pgmq queues, and tables for outbound items.

Rule 1: a session is a FIFO message group of pgmq. Who reads the first message of a group holds the
    session until that message's visibility timeout, which it renews. The message's number and read
    count are its fencing token, which every write to the session's rows must show.
Rule 2: every statement may be repeated.
Rule 3: no connection is held while waiting.
Rule 4: what arrives in a held session wakes its holder alone, by a topic of its own; what arrives in
    a free one wakes every worker. Wake-ups may be lost: all queues are polled at times.

``queries`` has the statements, ``held_session`` the state of one held session, ``held_sessions``
claims and renews them, ``row_handler`` turns rows into received messages, ``outbound`` carries
answers to channels, ``codec`` encodes messages, and ``bus`` has the bus and its ports.

Functions in the database keep the names that they were released with: ``look`` is ``poll`` for
processes of the version before, ``bury`` moves
a message to the dead letters, ``silence`` withdraws partials, ``letgo`` is a release request,
``hold`` locks a session without a worker, ``show`` writes partials, ``take`` claims outbound rows.
"""

from bot.bus.postgres.bus import PostgresBus

__all__ = [
    "PostgresBus",
    "codec",
]
