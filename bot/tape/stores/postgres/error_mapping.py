"""What the database refuses, as errors that say what it means for a tape."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from bot.core.errors import DatabaseUnavailable, TapeUnavailable, TapeWriteError


@contextmanager
def map_read_errors(what: str) -> Iterator[None]:
    """Map what may happen while something is read.

    Raises:
        TapeUnavailable: It could not be read.
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
    """Map what may happen while something is written.

    Raises:
        TapeWriteError: It was refused, or whether it was done is not known.
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


def server_message(error: psycopg.Error) -> str:
    """Return what the server says, without its details, which may hold what people said."""
    return error.diag.message_primary or type(error).__name__
