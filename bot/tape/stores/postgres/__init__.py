"""Tapes in PostgreSQL, which many processes write and read."""

from bot.tape.stores.postgres.store import PostgresTapeStore

__all__ = ["PostgresTapeStore"]
