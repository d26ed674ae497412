"""For whom models are called: a context variable, and what calls without a reply object used.

Whoever starts work that calls models says for whom with ``spends``; tasks started within inherit it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

from bot.llm.base import Usage


@dataclass(frozen=True, slots=True)
class Spender:
    """For whom a model is called.

    Attributes:
        identity: The person, ``telegram:42``; empty if nobody asked.
        session: Key of the conversation; empty outside of one.
        role: What for, such as ``task``; empty for the purpose of the request.
        owner: Whether the person owns the bot.
        request: Id of the turn, or of what else counts as one request.
    """

    identity: str = ""
    session: str = ""
    role: str = ""
    owner: bool = False
    request: str = ""


_NOBODY = Spender()

_spender: ContextVar[Spender] = ContextVar("spender", default=_NOBODY)
_reported: ContextVar[list[Usage] | None] = ContextVar("reported", default=None)


def current_spender() -> Spender:
    """Return for whom models are called here."""
    return _spender.get()


@contextmanager
def spends(spender: Spender) -> Iterator[None]:
    """Call models for somebody within the block."""
    token = _spender.set(spender)
    try:
        yield
    finally:
        _spender.reset(token)


def spends_as(role: str) -> AbstractContextManager[None]:
    """Call models for the same person within the block, but for something else."""
    return spends(replace(_spender.get(), role=role))


@contextmanager
def collected_usage() -> Iterator[list[Usage]]:
    """Collect what ``report_usage`` reports within the block."""
    found: list[Usage] = []
    token = _reported.set(found)
    try:
        yield found
    finally:
        _reported.reset(token)


def report_usage(usage: Usage) -> None:
    """Report the usage of a call whose result has no place for it; ignored if nobody collects."""
    found = _reported.get()
    if found is not None:
        found.append(usage)
