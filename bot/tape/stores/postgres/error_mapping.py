"""Raise database errors as errors that say what they mean for a tape."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bot.core.database.connections import server_message
from bot.core.errors import DatabaseUnavailable, TapeUnavailable, TapeWriteError


@contextmanager
def map_read_errors(what: str) -> Iterator[None]:
    """Map errors of a read.

    Raises:
        TapeUnavailable: The read failed.
    """
    try:
        yield
    except DatabaseUnavailable as error:
        raise TapeUnavailable(f"{what} could not be read: {error}") from error
    except psycopg.Error as error:
        raise TapeUnavailable(
            f"{what} could not be read: the database says: {server_message(error)}"
        ) from error


@contextmanager
def map_write_errors(what: str) -> Iterator[None]:
    """Map errors of a write.

    Raises:
        TapeWriteError: The write failed, or its outcome is unknown.
    """
    try:
        yield
    except DatabaseUnavailable as error:
        raise TapeWriteError(
            f"{what} could not be written: {error}; it is not known to be on the tape: look there "
            "before it is written again"
        ) from error
    except psycopg.Error as error:
        raise TapeWriteError(
            f"{what} could not be written, and nothing of it was: the database says: {server_message(error)}"
        ) from error
