"""What commands may ask of their session (``commands.registry.CommandContext``)."""

from __future__ import annotations

from pathlib import Path

from bot.agent.commands.registry import Asker, CommandRegistry
from bot.agent.requests import Requests
from bot.memory.archived import Archived
from bot.memory.fold import SessionFold
from bot.memory.forgetting.finding import Rights
from bot.memory.forgetting.survey import Survey, Surveyor
from bot.memory.forgetting.telling import Erased
from bot.memory.forgetting.wanted import Wanted
from bot.memory.longterm import LongTermMemory
from bot.memory.people import identity_at
from bot.memory.transcript import local_time, recorded_at
from bot.memory.zone import MemoryZone
from bot.runtime.sessions.consolidator import Consolidator
from bot.runtime.sessions.erasing import Eraser
from bot.runtime.sessions.services import SessionServices
from bot.tape.entries import TapeEntry
from bot.tape.service import TapeService

_NOBODY = Asker("member", private=False, id="", inbound="")


class SessionContext:
    """Shows a session to commands.

    Args:
        services: What sessions share.
        session: Its tape, fold and memory.
        consolidator: Its background consolidation.
        asker: Who gives the command.
        heard: The command as it is on the tape.
    """

    def __init__(
        self,
        services: SessionServices,
        session: Requests,
        consolidator: Consolidator,
        asker: Asker = _NOBODY,
        heard: TapeEntry | None = None,
    ) -> None:
        self._services = services
        self._session = session
        self._consolidator = consolidator
        self.asker = asker
        self._heard = heard

    def asked_by(self, asker: Asker, heard: TapeEntry) -> SessionContext:
        """Return the same for somebody else's command."""
        return SessionContext(self._services, self._session, self._consolidator, asker, heard)

    @property
    def heard(self) -> TapeEntry:
        """The command, as it is on the tape."""
        if self._heard is None:
            raise AssertionError
        return self._heard

    @property
    def memory(self) -> LongTermMemory:
        """What the session believes."""
        return self._session.memory

    @property
    def tape(self) -> TapeService:
        """The session's tape."""
        return self._session.tape

    @property
    def fold(self) -> SessionFold:
        """Its state."""
        return self._session.fold

    @property
    def zone(self) -> MemoryZone:
        """Its memory."""
        return self._session.zone

    @property
    def exports(self) -> Path:
        """The folder for exports."""
        return self._services.exports

    @property
    def commands(self) -> CommandRegistry:
        """All commands."""
        return self._services.commands

    async def archive(self) -> Archived:
        """Write all that is remembered of the session into one file of the folder for exports."""
        moment = recorded_at(self.heard) or self._services.agent.clock.now()
        return await self._services.archive(self.tape.name, self.asker.inbound, moment)

    async def survey(self, wanted: Wanted, request: TapeEntry | None = None) -> Survey:
        """Return what would be forgotten if the asker wanted it so, by this command or an earlier request."""
        return await self._eraser().surveyor.survey(wanted, request or self.heard)

    async def erase(
        self, wanted: Wanted, request: TapeEntry, shown: tuple[frozenset[int], int]
    ) -> Erased | Survey:
        """Erase what an earlier request asks for; see ``sessions.erasing.Eraser``."""
        return await self._eraser().erase(wanted, request, shown)

    async def drop_request(self, wanted: Wanted) -> None:
        """Erase the words of this command itself."""
        await self._eraser().drop_request(self.heard, wanted)

    def _eraser(self) -> Eraser:
        asker, services = self.asker, self._services
        owner = asker.role == "owner"
        identity = identity_at(self.tape.name, asker.id)
        who = services.scopes.linking.people.members(identity) if identity else ()
        rights = Rights(asker.private or owner, frozenset(who))
        surveyor = Surveyor(self.memory, rights, owner=owner)
        return Eraser(
            surveyor,
            services.scopes,
            services.bus.keep,
            services.traces,
            services.agent.vectors,
            services.memory_files,
        )

    def model_line(self) -> str:
        """Return the model's name."""
        name = self._session.agent.model.name
        if name == "offline":
            return "offline responder (no language model; set `TAPEBOT_MODEL` for one)"
        return f"`{name}`"

    def consolidation_line(self) -> str:
        """Return how consolidation stands."""
        zone = self._session.agent.timezone
        if self._consolidator.running:
            return "running"
        failure = self.fold.failure
        if failure is not None:
            when, error = local_time(failure, zone), failure.data.get("error")
            return f"failed at {when} ({error}); it is retried"
        if self.fold.consolidated is None:
            return "not needed yet"
        return f"last at {local_time(self.fold.consolidated, zone)}"
