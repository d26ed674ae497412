"""The roster's file: one process has it, and it is replaced whole.

A file that cannot be read lets nobody in and is not written over: it may name the owner.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter, ValidationError

from bot.access.roster import Chat, Person, Request, Roster, parse_place
from bot.errors import BusError, InvalidInbound, SettingsError, TapeLocked
from bot.files import PRIVATE_FILE, private_directory, replace_file

_PATIENCE = 3.0
"""Seconds to wait for another process: ``tapebot pair`` is done in less."""


@dataclass(frozen=True, slots=True)
class _File:
    version: Literal[1]
    people: tuple[Person, ...]
    chats: tuple[Chat, ...]
    requests: tuple[Request, ...]


_ADAPTER = TypeAdapter(_File)


class Book:
    """The file and the lock on it. All blocking.

    Args:
        path: The file; its lock is beside it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = FileLock(
            path.with_suffix(".lock"), timeout=_PATIENCE, mode=PRIVATE_FILE, thread_local=False
        )

    def open(self) -> Roster:
        """Take the file for this process, and return what it says.

        Raises:
            TapeLocked: Another process has it.
            SettingsError: It is damaged, or cannot be used.
        """
        try:
            private_directory(self._path.parent)
            self._lock.acquire()
        except Timeout as error:
            raise TapeLocked(
                f"{self._path} is in use by another tapebot; stop it, or let people in with /pair "
                "in a chat with it"
            ) from error
        except OSError as error:
            raise _unusable(self._path, error) from error
        try:
            return read_roster(self._path)
        except BaseException:
            self._lock.release()
            raise

    def save(self, roster: Roster) -> None:
        """Replace the file's content.

        Raises:
            BusError: The storage refused; the file says what it said.
        """
        try:
            replace_file(self._path, encode(roster))
        except OSError as error:
            raise BusError(
                f"who may use the bot could not be recorded in {self._path} ({error.strerror})"
            ) from error

    def close(self) -> None:
        """Give the file up."""
        self._lock.release()


def read_roster(path: Path) -> Roster:
    """Return what a file says, also while another process has it; nobody where it is not there.

    Raises:
        SettingsError: It is damaged, or cannot be read.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Roster()
    except OSError as error:
        raise _unusable(path, error) from error
    return decode(data, path)


def encode(roster: Roster) -> bytes:
    """Return a roster as the file holds it."""
    whole = _File(1, roster.people, roster.chats, roster.requests)
    return _ADAPTER.dump_json(whole, indent=2) + b"\n"


def decode(data: bytes, path: Path) -> Roster:
    """Return the roster of a file's content.

    Raises:
        SettingsError: It is none, or one of another version of tapebot.
    """
    try:
        whole = _ADAPTER.validate_json(data, strict=True)
    except (ValidationError, InvalidInbound) as error:
        raise _damaged(path) from error
    roster = Roster(whole.people, whole.chats, whole.requests)
    if not _sound(roster):
        raise _damaged(path)
    return roster


def _sound(roster: Roster) -> bool:
    """Say whether places are places and stand once, and times can be compared."""
    people = [one.place for one in roster.people]
    chats = [one.place for one in roster.chats]
    places = [*people, *chats, *(one.person for one in roster.requests)]
    times: list[datetime] = [one.since for one in roster.people]
    times += [one.since for one in roster.chats]
    times += [moment for one in roster.requests for moment in (one.since, one.told)]
    return (
        all(parse_place(place) == place for place in places)
        and len(set(people)) == len(people)
        and len(set(chats)) == len(chats)
        and all(moment.tzinfo is not None for moment in times)
    )


def _unusable(path: Path, error: OSError) -> SettingsError:
    return SettingsError(
        f"{path}, which says who may use the bot, cannot be used ({error.strerror}); it must "
        "belong to the user that tapebot runs as"
    )


def _damaged(path: Path) -> SettingsError:
    return SettingsError(
        f"{path} is damaged, or of another version of tapebot; it says who may use the bot, so "
        "nobody is let in. Put back a copy of it. Without one, move it away: the bot then forgets "
        "whom it let in, and prints a new claim code unless TAPEBOT_OWNERS is set."
    )
