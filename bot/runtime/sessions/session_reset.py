"""Reset a conversation: empty its tape and rebuild everything derived from it."""

from __future__ import annotations

from bot.core.errors import MemoryRefused, VersionConflict
from bot.core.i18n import N_, _
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.memory.session.scope.identities import is_shared_scope
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.zone import MemoryZone
from bot.memory.session.vector_index import VectorIndex
from bot.runtime.sessions.derived_files import BUSY, DerivedFiles, suspend_files
from bot.tape.service import TapeService
from bot.tape.store import TapeStore

_GREW = N_("the conversation continued after the export, so nothing was reset; try again")


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

    A worker in this process goes on with the new state; one in another process fails at its next
    write and reads the tape anew.

    Args:
        store: Stores the tape.
        session: The session's key.
        scopes: The scopes, and the sessions that have a worker in this process.
        expect: The expected version of the tape: the one that was exported.
        archive: Seal the entries instead of dropping them.
        vectors: Index of message vectors; None without one.
        files: Files derived from tapes; None without any.

    Raises:
        TapeNotFound: There is no such conversation.
        MemoryRefused: The session is busy or has new entries; nothing was reset.
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
        fold = await load_fold(tape)
        tape.fence(expect)
        zone = MemoryZone(tape, clock=scopes.clock, fold=fold.zone)
        try:
            async with suspend_files(files, {session}):
                await zone.reset(archive=archive)
        except VersionConflict as error:
            raise MemoryRefused(_(_GREW)) from error
        if live is not None:
            await live.reload()
        if vectors is not None:
            await vectors.purge_erased(session)


def check_resettable(session: str) -> None:
    """Refuse tapes that are no conversations.

    Raises:
        MemoryRefused: The tape holds a person's or the workspace's memory.
    """
    if is_shared_scope(session):
        raise MemoryRefused(
            _(
                "{session} is not a conversation but a memory. Use `/memory forget` or `/memory clear`",
                session=session,
            )
        )
