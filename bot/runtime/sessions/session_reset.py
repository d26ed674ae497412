"""Resets a conversation: its tape begins anew, and everything that is folded from it."""

from __future__ import annotations

from bot.core.errors import MemoryRefused, VersionConflict
from bot.memory.fold_loader import load_fold
from bot.memory.scope_registry import ScopeRegistry, is_shared_scope
from bot.memory.vector_index import VectorIndex
from bot.memory.zone import MemoryZone
from bot.runtime.sessions.erasure import BUSY, DerivedFiles, suspend_files
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_GREW = "the conversation has gone on since it was exported; nothing was reset: try again"
_NO_VIEW = 1


async def reset_session(
    store: TapeStore,
    session: str,
    scopes: ScopeRegistry,
    *,
    expect: int,
    archive: bool,
    vectors: VectorIndex | None = None,
    files: DerivedFiles | None = None,
) -> None:
    """Empty a conversation's tape, and write an empty memory zone to it.

    A worker of this process goes on with the new state; one of another process finds out with its next
    write, and reads the tape anew.

    Args:
        store: Holds the tape.
        session: The session's key.
        scopes: All there are in this process, and all sessions that have a worker here.
        expect: The version that the tape must be at: the one that was exported.
        archive: Seal what is there, instead of dropping it.
        vectors: Find messages by meaning; None where nothing does.
        files: Made from tapes; None where there are none.

    Raises:
        TapeNotFound: There is no such conversation.
        MemoryRefused: It is at work, or has gone on; nothing was reset.
        TapeWriteError: The storage refused; nothing was reset.
    """
    check_resettable(session)
    async with scopes.session_locks.erasure_lock, scopes.session_locks.erase_lock({session}):
        live = scopes.active_sessions.get(session)
        if live is not None:
            if live.is_busy:
                raise MemoryRefused(BUSY)
            live.cancel_background_work()
        tape = TapeService(store, session)
        fold = await load_fold(tape, max_messages=_NO_VIEW, max_tokens=_NO_VIEW)
        tape.fence(expect)
        zone = MemoryZone(tape, clock=scopes.clock, fold=fold.zone)
        try:
            async with suspend_files(files, {session}):
                await zone.reset(archive=archive)
        except VersionConflict as error:
            raise MemoryRefused(_GREW) from error
        if live is not None:
            await live.reload()
        if vectors is not None:
            await vectors.purge_erased(session)


def check_resettable(session: str) -> None:
    """Refuse what is no conversation.

    Raises:
        MemoryRefused: The tape holds what is known of a person, or in the workspace.
    """
    if is_shared_scope(session):
        raise MemoryRefused(
            f"{session} is no conversation: it holds what is known there. `/memory forget` and `/memory clear` "
            "take that away"
        )
