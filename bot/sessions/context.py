"""What commands may ask of their session (``commands.registry.CommandContext``)."""

from __future__ import annotations

from pathlib import Path

from bot.agent.requests import Requests
from bot.commands.registry import Asker, CommandRegistry
from bot.memory.fold import SessionFold
from bot.memory.transcript import local_time
from bot.memory.zone import MemoryZone
from bot.sessions.consolidator import Consolidator
from bot.sessions.services import SessionServices
from bot.tape.service import TapeService

_NOBODY = Asker("member", private=False)


class SessionContext:
    """Shows a session to commands.

    Args:
        services: What sessions share.
        session: Its tape, fold and memory.
        consolidator: Its background consolidation.
        asker: Who gives the command.
    """

    def __init__(
        self,
        services: SessionServices,
        session: Requests,
        consolidator: Consolidator,
        asker: Asker = _NOBODY,
    ) -> None:
        self._services = services
        self._session = session
        self._consolidator = consolidator
        self.asker = asker

    def asked_by(self, asker: Asker) -> SessionContext:
        """Return the same for somebody else's command."""
        return SessionContext(self._services, self._session, self._consolidator, asker)

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
