"""Load the plug-ins of installed packages; one that is wrong is left out, with a text that says why.

Rule 1: the entry point's name is the name of what it adds: a tool's, a command's, a channel's.
Rule 2: names of the program's own parts are never a plug-in's, also where such a part is turned off.
Rule 3: what a plug-in's code raises ends that call, command or channel, and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.registry import Command, CommandContext, CommandReply
from bot.agent.tools.registry import Tool, ToolContext, ToolOutcome
from bot.bus import ChannelPort, ChannelRefused
from bot.core.errors import PluginUnavailable, TapebotError
from bot.core.patterns import LazyPattern
from bot.core.plugins import Plugin, PluginKind, Plugins, raised
from bot.core.reasons import Reason, reason_of
from bot.runtime.models import RESERVED_MODELS
from channels.base import Channel, ChannelContext, ChannelSpec
from channels.registry import PLATFORMS

logger = logging.getLogger(__name__)

T = TypeVar("T")

RESERVED_NAMESPACES = frozenset(
    "code file files judge mcp memory problem run schedule skill skills tape web".split()
)
"""First parts of the names of the program's own tools."""

RESERVED_COMMANDS = frozenset(
    "approvals approve claim deny exit export files forget language link login mcp pair quit skills unlink why".split()
)
"""Commands that the program has only with some settings, or that a platform's adapter answers."""

RESERVED_CHANNELS = frozenset(
    (
        *("console", "everyone", "files", "person", "role", "session", "web", "workspace"),
        *("api", "chatgpt", "claude", "openclaw"),
        *PLATFORMS,
    )
)
"""The program's own channels, those of client programs and imports, and first parts of the names of
tapes that are no conversations."""

_SMALL_NAME = LazyPattern(r"[a-z][a-z0-9_]{0,31}")
_NAMES: dict[PluginKind, tuple[LazyPattern, Reason]] = {
    "tools": (LazyPattern(r"[a-z][a-z0-9]*(?:\.[a-z][a-z0-9_]*)+"), Reason("plugin_tool_name")),
    "commands": (_SMALL_NAME, Reason("plugin_small_name")),
    "channels": (_SMALL_NAME, Reason("plugin_small_name")),
    "models": (_SMALL_NAME, Reason("plugin_small_name")),
}
_LONGEST_TOOL_NAME = 64
_LONGEST_DESCRIPTION = 1_000
_SUMMARY = LazyPattern(r"[^\n]{1,100}")


class PluginLoader:
    """Loads plug-ins for the program, and collects what is wrong with them.

    Attributes:
        problems: A reason for each plug-in that is left out.
    """

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self.problems: list[str] = [
            Reason("plugin_missing", package=package) for package in plugins.missing()
        ]

    def tools(self, own: Iterable[Tool[Any]]) -> list[Tool[Any]]:
        """Return the plug-ins' tools."""
        taken = {tool.wire_name: "tapebot" for tool in own}
        return self._load("tools", taken, _tool)

    def commands(self, own: Iterable[str]) -> list[Command]:
        """Return the plug-ins' commands."""
        return self._load("commands", dict.fromkeys(own, "tapebot"), _command)

    def channels(self) -> list[ChannelSpec]:
        """Return the channels that plug-ins have configured."""
        return [spec for specs in self._load("channels", {}, _channels) for spec in specs]

    def announce_problems(self, announce: Callable[[str], None]) -> None:
        """Tell the operator what is wrong with plug-ins."""
        for problem in self.problems:
            announce(f"{problem}")

    def _load(
        self, kind: PluginKind, taken: dict[str, str], make: Callable[[Plugin], T]
    ) -> list[T]:
        """Return what the plug-ins of a kind add; those without a conflict, and without an error."""
        made = []
        for plugin in self._plugins.of(kind):
            try:
                check_name(plugin, taken)
                made.append(make(plugin))
            except PluginUnavailable as error:
                # The operator is told by announce_problems; the log has the traceback.
                logger.info("%s", error, exc_info=error.__cause__)
                self.problems.append(reason_of(error))
            else:
                taken[_wire_name(plugin)] = plugin.package
        return made


def check_plugins(plugins: Plugins) -> list[tuple[Plugin, str]]:
    """Load each installed plug-in that may run; return them all, each with what is wrong with it."""
    makers: dict[PluginKind, Callable[[Plugin], object]] = {
        "tools": _tool,
        "commands": _command,
        "channels": _channels,
        "models": _model_factory,
    }
    taken = {kind: dict[str, str]() for kind in makers}
    taken["commands"] = dict.fromkeys(builtin_commands().names(), "tapebot")
    checked = []
    for plugin in plugins.installed:
        problem = ""
        if plugins.is_allowed(plugin):
            try:
                check_name(plugin, taken[plugin.kind])
                makers[plugin.kind](plugin)
                taken[plugin.kind][_wire_name(plugin)] = plugin.package
            except PluginUnavailable as error:
                problem = reason_of(error)
        checked.append((plugin, problem))
    return checked


def check_name(plugin: Plugin, taken: dict[str, str]) -> None:
    """Check that a plug-in's name is well formed, and nobody else's.

    Raises:
        PluginUnavailable: It is not.
    """
    pattern, form = _NAMES[plugin.kind]
    name = plugin.name
    if len(name) > _LONGEST_TOOL_NAME or not pattern.fullmatch(name):
        raise plugin.unavailable(Reason("plugin_bad_name", form=form))
    own = {
        "tools": name.partition(".")[0] in RESERVED_NAMESPACES,
        "commands": name in RESERVED_COMMANDS,
        "channels": name in RESERVED_CHANNELS,
        "models": name in RESERVED_MODELS,
    }
    holder = "tapebot" if own[plugin.kind] else taken.get(_wire_name(plugin))
    if holder is not None:
        raise plugin.unavailable(Reason("plugin_name_taken", holder=holder))


def _wire_name(plugin: Plugin) -> str:
    return plugin.name.replace(".", "_")


def _expect(plugin: Plugin, kind: type[T]) -> T:
    """Load a plug-in whose object has a type and the entry point's name."""
    found = plugin.load()
    if not isinstance(found, kind):
        found_type, expected = type(found).__name__, kind.__name__
        raise plugin.unavailable(Reason("plugin_wrong_type", found=found_type, expected=expected))
    if getattr(found, "name", None) != plugin.name:
        raise plugin.unavailable(Reason("plugin_other_name", name=str(getattr(found, "name", ""))))
    return found


def _tool(plugin: Plugin) -> Tool[Any]:
    tool: Tool[Any] = _expect(plugin, Tool)
    try:
        tool.spec()
    except Exception as error:
        # Isolates the program from a schema that pydantic cannot make.
        raise plugin.unavailable(Reason("plugin_no_schema", error=str(error))) from error
    if not 0 < len(tool.description) <= _LONGEST_DESCRIPTION:
        raise plugin.unavailable(Reason("plugin_no_description"))

    async def run(arguments: Any, context: ToolContext) -> ToolOutcome:
        try:
            return await tool.run(arguments, context)
        except TapebotError:
            raise
        except Exception as error:
            # Isolates the turn from code that the program does not know.
            logger.exception("%s failed", plugin)
            code = "plugin_failed_acting" if tool.effect == "acts" else "plugin_failed"
            raise TapebotError(plugin.failed(error, code)) from error

    return replace(tool, run=run, by_others=True)


def _command(plugin: Plugin) -> Command:
    command = _expect(plugin, Command)
    run = command.run
    if run is None:
        raise plugin.unavailable(Reason("plugin_no_function"))
    if not _SUMMARY.fullmatch(command.summary):
        raise plugin.unavailable(Reason("plugin_no_summary"))

    async def isolated(arguments: str, context: CommandContext) -> CommandReply:
        try:
            return await run(arguments, context)
        except TapebotError:
            raise
        except Exception as error:
            # Isolates the session from code that the program does not know.
            logger.exception("%s failed", plugin)
            raise TapebotError(plugin.failed(error)) from error

    return replace(command, run=isolated)


def _channels(plugin: Plugin) -> list[ChannelSpec]:
    configured = plugin.load()
    try:
        specs = list(configured())
    except TapebotError as error:
        raise plugin.unavailable(Reason("plugin_left_out", error=reason_of(error))) from error
    except Exception as error:
        # Isolates the program from code that it does not know.
        raise plugin.unavailable(raised("plugin_left_out_error", error)) from error
    for spec in specs:
        if not isinstance(spec, ChannelSpec) or spec.name.partition("-")[0] != plugin.name:
            raise plugin.unavailable(Reason("plugin_foreign_specs"))
        if spec.receive is not None:
            raise plugin.unavailable(Reason("plugin_sets_receive"))
    return [replace(spec, create=partial(_create_channel, plugin, spec)) for spec in specs]


def _model_factory(plugin: Plugin) -> object:
    factory = plugin.load()
    if not callable(factory):
        raise plugin.unavailable(Reason("plugin_no_factory"))
    return factory


def _create_channel(plugin: Plugin, spec: ChannelSpec, context: ChannelContext) -> Channel:
    try:
        return _IsolatedChannel(plugin, spec.create(context))
    except Exception as error:
        # Isolates the other channels from code that the program does not know.
        raise _refused(plugin, error) from error


class _IsolatedChannel(Channel):
    """Runs a plug-in's channel; what it raises is a refusal, which ends this channel alone."""

    def __init__(self, plugin: Plugin, channel: Channel) -> None:
        self._plugin = plugin
        self._channel = channel

    @property
    def name(self) -> str:
        """The channel's name."""
        return self._channel.name

    async def run(self, port: ChannelPort) -> None:
        """Serve until the channel ends.

        Raises:
            ChannelRefused: The channel was refused, or failed.
        """
        try:
            await self._channel.run(port)
        except Exception as error:
            # Isolates the other channels from code that the program does not know.
            raise _refused(self._plugin, error) from error


def _refused(plugin: Plugin, error: Exception) -> ChannelRefused:
    """Return the refusal in an error, perhaps in an exception group; else one that names it."""
    found: BaseException | None = error
    if isinstance(found, BaseExceptionGroup):
        found = found.subgroup(ChannelRefused)
        while isinstance(found, BaseExceptionGroup):
            found = found.exceptions[0]
    if isinstance(found, ChannelRefused):
        return found
    logger.error("%s failed", plugin, exc_info=error)
    return ChannelRefused(plugin.failed(error, "plugin_failed_log"))
