"""Build what extends the model: MCP servers, plug-ins, skills, and folders of files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.agent.commands.files import files_command
from bot.agent.commands.registry import Command
from bot.agent.commands.skills import skills_command
from bot.agent.skills.skill_library import SkillLibrary
from bot.agent.skills.skill_sources import SkillFetcher
from bot.agent.workspace_files import WorkspaceFiles
from bot.bus import Bus
from bot.bus.media.blobs import Blobs
from bot.core.clock import Clock
from bot.core.plugins import Plugins
from bot.memory.session.linking.scope_registry import ScopeRegistry
from bot.runtime.app.database_services import DatabaseServices
from bot.runtime.app.file_services import FileServices, make_file_services
from bot.runtime.app.mcp import make_mcp, mcp_commands
from bot.runtime.app.plugins import PluginLoader
from bot.runtime.app.residual_files import ResidualFiles
from bot.runtime.settings import Settings
from bot.tape.store import TapeStore

if TYPE_CHECKING:
    from bot.mcp_client.client import McpClient


@dataclass(frozen=True, slots=True)
class Extensions:
    """What extends the model.

    Attributes:
        mcp: The MCP servers; None if none is configured.
        plugins: Loads what installed packages add.
        skills: The skills.
        files: The folders of files.
    """

    mcp: McpClient | None
    plugins: PluginLoader
    skills: SkillLibrary
    files: FileServices

    def commands(self) -> list[Command]:
        """Return the commands for it, but for those of plug-ins."""
        return [
            skills_command(self.skills),
            *mcp_commands(self.mcp),
            files_command(self.files.service),
        ]


def make_extensions(
    settings: Settings,
    *,
    store: TapeStore,
    scopes: ScopeRegistry,
    clock: Clock,
    bus: Bus,
    language_of: Callable[[str], Awaitable[str]],
    blobs: Blobs,
    residual: ResidualFiles,
    database: DatabaseServices | None,
) -> Extensions:
    """Return what the settings say."""
    return Extensions(
        make_mcp(
            settings,
            store=store,
            scopes=scopes,
            clock=clock,
            bus=bus,
            language_of=language_of,
            blobs=blobs,
            database=database,
        ),
        PluginLoader(Plugins(settings.plugins)),
        SkillLibrary(
            WorkspaceFiles(settings.workspace_folder, clock),
            store,
            blobs,
            linked=scopes.identity_linker.people.members,
            fetcher=SkillFetcher(settings.home / "incoming-skills"),
            send=bus.send,
            language_of=language_of,
        ),
        make_file_services(
            settings.home,
            store,
            blobs,
            max_bytes=settings.files_mb * 1_000_000,
            erase_blobs=residual.erase,
        ),
    )
