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
from bot.core.errors import ModelRejected, ModelUnavailable, SettingsError
from bot.core.plugins import Plugins
from bot.llm.base import ModelRequest
from bot.memory.records.files import FILES_PREFIX
from bot.memory.session.linking.scope_registry import PERSON_SCOPE_PREFIX
from bot.memory.session.scope.identities import WORKSPACE_PREFIX
from bot.runtime.app import make_model, open_app
from bot.runtime.app.channels import configured_channels, run_channels
from bot.runtime.app.plugins import (
    RESERVED_CHANNELS,
    RESERVED_COMMANDS,
    RESERVED_NAMESPACES,
    PluginLoader,
)
from bot.runtime.settings import Settings
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply
from channels.base import ChannelSpec

CODE = """
from pydantic import BaseModel
from bot.agent.commands.registry import Command, CommandReply
from bot.agent.tools.registry import Tool, ToolOutcome
from bot.core.errors import TapebotError
from bot.llm.base import CapabilityProfile, ModelReply
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
WORDLESS = Tool("dice.wordless", "", Nothing, roll)
COMMAND = Command("roll", "roll a die", (), command)
BURNING = Command("burn", "burn a die", (), burn)
IDLE = Command("idle", "do nothing", (), None)
LONG = Command("long", "roll " * 40, (), command)


class Model:
    name = "parrot"
    profile = CapabilityProfile(context_tokens=5000)

    def __init__(self, words):
        self.words = words

    async def complete(self, request, on_text=None):
        if self.words == "burn":
            raise KeyError("oh")
        return ModelReply(self.words, model="parrot") if self.words != "odd" else self.words

    async def aclose(self):
        raise KeyError("oh")


def parrot(name, options):
    if not name:
        raise TapebotError("which words? TAPEBOT_MODEL=parrot:WORDS")
    return Model(name)


class Channel:
    name = "pigeon"

    async def run(self, port):
        raise KeyError("oh")


def pigeons():
    yield ChannelSpec("pigeon", lambda context: Channel())


def owls():
    raise KeyError("OWL_TOKEN")


def none():
    return ()


def ravens():
    yield ChannelSpec("telegram", lambda context: Channel())
"""

KINDS = {
    "tools": {"dice.roll": "ROLL", "dice.send": "SEND", "dice.burn": "BURN"},
    "commands": {"roll": "COMMAND", "burn": "BURNING"},
    "models": {"parrot": "parrot"},
    "channels": {"pigeon": "pigeons", "crow": "none"},
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


async def test_plug_ins_are_part_of_the_program(dice, tmp_path):
    async with open_app(settings(tmp_path)) as app:
        assert app.extensions.plugins.problems == []
        assert app.services.agent.tools.get("dice.roll") is not None
        assert "- `/roll`: roll a die" in app.services.commands.help(OWNER)
        assert "roll" in [one.name for one in app.services.commands.visible_commands()]
        names = [spec.name for spec in configured_channels(app, print)]
        assert "pigeon" in names


WRONG = {
    "a module that is not there": ("tools", "dice.roll", "LOST", "cannot be loaded"),
    "another type": ("tools", "dice.roll", "COMMAND", "is a Command, not a Tool"),
    "another name": ("tools", "dice.throw", "ROLL", "calls itself 'dice.roll'"),
    "no description": ("tools", "dice.wordless", "WORDLESS", "needs a description"),
    "a name of one word": ("tools", "dice", "ROLL", "its name must be a name such as dice.roll"),
    "a tool's name of ours": ("tools", "memory.save", "ROLL", "the name is taken by tapebot"),
    "a server's name": ("tools", "mcp.files.read", "ROLL", "the name is taken by tapebot"),
    "a command of ours": ("commands", "help", "COMMAND", "the name is taken by tapebot"),
    "a command that may come": ("commands", "mcp", "COMMAND", "the name is taken by tapebot"),
    "no function": ("commands", "idle", "IDLE", "has no function that runs it"),
    "a long summary": ("commands", "long", "LONG", "needs a summary of one line"),
    "capitals": ("commands", "Roll", "COMMAND", "its name must be up to 32 small letters"),
    "a channel of ours": ("channels", "telegram", "pigeons", "the name is taken by tapebot"),
    "another channel's name": ("channels", "raven", "ravens", "objects of its own name"),
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


async def test_of_two_packages_with_one_name_the_first_has_it(path, dice, tmp_path):
    install(path, "tapebot-other", CODE, {"commands": {"roll": "COMMAND"}})
    async with open_app(settings(tmp_path)) as app:
        [problem] = app.extensions.plugins.problems
        assert "roll of tapebot-other 1.0 is left out: the name is taken by tapebot-dice" in problem


async def test_every_name_of_the_program_is_reserved(tmp_path):
    servers = {"files": {"command": "true"}}
    async with open_app(settings(tmp_path, mcp=servers)) as app:
        names = set(app.services.commands.names())
        assert names - set(builtin_commands().names()) <= RESERVED_COMMANDS
        tools = app.services.agent.tools._tools.values()
        assert {tool.name.partition(".")[0] for tool in tools} <= RESERVED_NAMESPACES
    for prefix in (FILES_PREFIX, PERSON_SCOPE_PREFIX, WORKSPACE_PREFIX):
        assert prefix.removesuffix(":") in RESERVED_CHANNELS


@pytest.mark.parametrize("allowed", ["off", "tapebot-other"])
async def test_only_packages_that_the_owner_names_run(dice, tmp_path, allowed):
    chosen = settings(tmp_path, plugins=allowed, model="parrot:hello")
    async with open_app(settings(tmp_path, plugins=allowed)) as app:
        assert app.services.agent.tools.get("dice.roll") is None
        assert app.services.commands.get("roll") is None
        configured_channels(app, print)
        assert dice not in sys.modules
        missing = [one for one in app.extensions.plugins.problems if "tapebot-other" in one]
        assert len(missing) == (allowed != "off")
    told = report(await run_checks(chosen))
    assert "tool dice.roll of tapebot-dice 1.0: switched off by TAPEBOT_PLUGINS" in told
    assert dice not in sys.modules


async def test_a_package_is_named_as_indexes_compare_names(dice, tmp_path):
    async with open_app(settings(tmp_path, plugins="Tapebot_Dice")) as app:
        assert app.services.commands.get("roll") is not None
        assert app.extensions.plugins.problems == []


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


async def ask(model) -> str:
    return (await model.complete(ModelRequest([{"role": "user", "content": "hello"}]))).content


async def test_a_plug_ins_model_is_chosen_by_its_name(dice, tmp_path):
    model = make_model(settings(tmp_path, model="parrot:hello"))
    assert (model.name, model.profile.context_tokens) == ("parrot:hello", 5000)
    assert await ask(model) == "hello"
    await model.aclose()  # what it raises is logged


@pytest.mark.parametrize(
    ("words", "error", "why"),
    [
        ("", ModelUnavailable, "which words"),
        ("burn", ModelRejected, "model parrot of tapebot-dice 1.0 failed .KeyError"),
        ("odd", ModelRejected, "returned no ModelReply"),
    ],
)
async def test_a_model_that_fails_ends_its_call_and_fallbacks_are_tried(
    dice, tmp_path, words, error, why
):
    with pytest.raises(error, match=why):
        await ask(make_model(settings(tmp_path, model=f"parrot:{words}")))
    chosen = settings(tmp_path, model=f"parrot:{words}", fallback_models="parrot:fine")
    assert await ask(make_model(chosen)) == "fine"


async def test_a_preset_and_its_fallbacks_may_be_a_plug_ins(dice, tmp_path):
    presets = {"bird": {"model": "parrot:burn", "fallbacks": ["parrot:tweet"]}}
    chosen = settings(tmp_path, models=presets, model=None, roles={"chat": "bird"})
    assert await ask(make_model(chosen)) == "tweet"
    assert "a plug-in's, of tapebot-dice" in report(await run_checks(chosen))


def test_an_owner_may_call_a_plug_ins_model_private(dice, tmp_path):
    presets = {"bird": {"model": "parrot:tweet", "private": True}}
    assert settings(tmp_path, models=presets).models["bird"].private


async def test_doctor_says_that_nobody_offers_a_model(dice, tmp_path):
    for chosen in ({"model": "parot:hello"}, {"model": "parrot:hello", "plugins": "off"}):
        told = report(await run_checks(settings(tmp_path, **chosen)))
        assert f"no plug-in here offers {chosen['model'].partition(':')[0]}" in told


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


def test_people_of_a_plug_ins_channel_may_be_owners(dice, tmp_path):
    assert settings(tmp_path, owners="pigeon:coo-7").owners == ("pigeon:coo-7",)
    with pytest.raises((SettingsError, ValueError), match="telegram: or discord:"):
        settings(tmp_path, owners="pidgin:coo-7")


async def test_doctor_lists_what_is_installed(dice, tmp_path):
    told = report(await run_checks(settings(tmp_path)))
    for each in ("tool dice.roll", "command roll", "model parrot", "channel pigeon"):
        assert f"ok   plug-ins   {each} of tapebot-dice 1.0" in told
