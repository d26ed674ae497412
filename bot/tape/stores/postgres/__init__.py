"""Store tapes in PostgreSQL, for any number of writing and reading processes."""

from bot.tape.stores.postgres.store import PostgresTapeStore

__all__ = [
    "PostgresTapeStore",
    "store",
]
