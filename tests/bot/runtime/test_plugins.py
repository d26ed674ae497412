"""Plug-ins of installed packages: what they add, and what becomes of one that is wrong."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import pytest
from installed_packages import install

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.registry import CommandAuthor
from bot.bus import ChannelPort
from bot.cli.doctor import report, run_checks
from bot.core.plugins import Plugins
from bot.runtime.app import open_app
from bot.runtime.app.channels import configured_channels, run_channels
from bot.runtime.app.plugins import PluginLoader
from bot.runtime.settings import Settings
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from channels.base import ChannelSpec

CODE = """
from pydantic import BaseModel
from bot.agent.commands.registry import Command, CommandReply
from bot.agent.tools.registry import Tool, ToolOutcome
from channels.base import ChannelSpec


class Nothing(BaseModel):
    pass


async def roll(arguments, context):
    return ToolOutcome("4")


async def burn(arguments, context):
    raise KeyError("oh")


async def command(arguments, context):
    return CommandReply(f"rolled {arguments}")


ROLL = Tool("dice.roll", "Roll a die.", Nothing, roll, effect="reads_own")
SEND = Tool("dice.send", "Send a die.", Nothing, roll)
BURN = Tool("dice.burn", "Burn a die.", Nothing, burn, effect="reads_own")
COMMAND = Command("roll", "roll a die", (), command)
BURNING = Command("burn", "burn a die", (), burn)
IDLE = Command("idle", "do nothing", (), None)


class Channel:
    name = "pigeon"

    async def run(self, port):
        raise KeyError("oh")


def pigeons():
    yield ChannelSpec("pigeon", lambda context: Channel())


def owls():
    raise KeyError("OWL_TOKEN")
"""

KINDS = {
    "tools": {"dice.roll": "ROLL", "dice.send": "SEND", "dice.burn": "BURN"},
    "commands": {"roll": "COMMAND", "burn": "BURNING"},
    "channels": {"pigeon": "pigeons"},
}
OWNER = CommandAuthor("owner", private=True, id="7", inbound="m1")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of the import path."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def dice(path: Path) -> str:
    return install(path, "tapebot-dice", CODE, KINDS)


def settings(folder: Path, **more) -> Settings:
    return Settings(_env_file=None, home=folder / "home", **{"model": "offline"} | more)


WRONG = {
    "a module that is not there": ("tools", "dice.roll", "LOST", "cannot be loaded"),
    "another type": ("tools", "dice.roll", "COMMAND", "is a Command, not a Tool"),
    "a name of one word": ("tools", "dice", "ROLL", "its name must be a name such as dice.roll"),
    "a tool's name of ours": ("tools", "memory.save", "ROLL", "the name is taken by tapebot"),
    "a server's name": ("tools", "mcp.files.read", "ROLL", "the name is taken by tapebot"),
    "a command of ours": ("commands", "help", "COMMAND", "the name is taken by tapebot"),
    "no function": ("commands", "idle", "IDLE", "has no function that runs it"),
    "a channel of ours": ("channels", "telegram", "pigeons", "the name is taken by tapebot"),
    "settings that fail": ("channels", "owl", "owls", "is left out (KeyError: 'OWL_TOKEN')"),
}


@pytest.mark.parametrize("case", WRONG)
async def test_a_plug_in_that_is_wrong_is_told_of_and_the_program_runs(path, tmp_path, case):
    kind, name, it, why = WRONG[case]
    install(path, "tapebot-odd", CODE, {kind: {name: it}})
    async with open_app(settings(tmp_path)) as app:
        texts: list[str] = []
        configured_channels(app, texts.append)
        [problem] = texts
        assert why in problem
        assert f"{name} of tapebot-odd 1.0" in problem
        assert "update or uninstall tapebot-odd" in problem
        assert "/help" in app.services.commands.help(OWNER)
    told = report(await run_checks(settings(tmp_path)))
    assert why in told
    assert "-> Update or uninstall tapebot-odd" in told


async def test_a_package_whose_import_ends_the_program_does_not_end_it(path, tmp_path):
    install(path, "tapebot-odd", "import sys\nsys.exit('bye')", {"tools": {"odd.one": "ONE"}})
    async with open_app(settings(tmp_path)) as app:
        [problem] = app.extensions.plugins.problems
        assert "SystemExit: bye" in problem


@pytest.mark.parametrize("allowed", ["off", "tapebot-other"])
async def test_only_packages_that_the_owner_names_run(dice, tmp_path, allowed):
    chosen = settings(tmp_path, plugins=allowed)
    async with open_app(chosen) as app:
        assert app.services.agent.tools.get("dice.roll") is None
        assert app.services.commands.get("roll") is None
        configured_channels(app, print)
        assert dice not in sys.modules
        missing = [one for one in app.extensions.plugins.problems if "tapebot-other" in one]
        assert len(missing) == (allowed != "off")
    told = report(await run_checks(chosen))
    assert "tool dice.roll of tapebot-dice 1.0: switched off by TAPEBOT_PLUGINS" in told
    assert dice not in sys.modules


async def test_a_tool_that_states_no_effect_waits_for_a_yes(dice, tmp_path):
    tools = PluginLoader(Plugins()).tools([])
    model = ScriptedModel([tool_call_reply(("dice_send", {})), text_reply("asked")] * 2)
    async with session_host(tmp_path / "home", model, tools=tools) as host:
        assert "dice" in await host.channel.ask("send a die")
        await host.wait_for_event("tool.pending")
        assert not await host.events("tool.started")


async def test_what_a_tool_or_a_command_raises_ends_that_call_alone(dice, tmp_path):
    loader = PluginLoader(Plugins())
    model = ScriptedModel([tool_call_reply(("dice_burn", {})), text_reply("it failed")])
    commands = builtin_commands(loader.commands([]))
    async with session_host(
        tmp_path / "home", model, tools=loader.tools([]), commands=commands
    ) as host:
        assert await host.channel.ask("burn") == "it failed"
        [result] = [entry for entry in await host.tape() if entry.kind == "tool_result"]
        assert "tool dice.burn of tapebot-dice 1.0 failed (KeyError)" in result.payload["content"]
        told = await host.channel.ask("/burn")
        assert told == "That did not work: command burn of tapebot-dice 1.0 failed (KeyError)."
        assert await host.channel.ask("/roll 6") == "rolled 6"


class OpenChannel:
    """Ends by itself once the other one has failed."""

    name = "open"

    def __init__(self, told: anyio.Event, context) -> None:
        self._told = told

    async def run(self, port: ChannelPort) -> None:
        await self._told.wait()


async def test_a_channel_that_fails_is_told_of_and_ends_no_other(dice, tmp_path):
    told, texts = anyio.Event(), []

    def announce(text: str) -> None:
        texts.append(text)
        told.set()

    async with open_app(settings(tmp_path)) as app:
        specs = [
            *app.extensions.plugins.channels(),
            ChannelSpec("open", partial(OpenChannel, told)),
        ]
        with anyio.fail_after(30):
            await run_channels(app, specs, announce)
    assert texts == ["channel pigeon of tapebot-dice 1.0 failed (KeyError); the log says more"]
