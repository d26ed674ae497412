"""``tapebot setup`` in a real terminal, with servers that stand for the platforms and the model."""

from __future__ import annotations

import io
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import pexpect
import pytest
from terminals import SECONDS, at_terminal, end

from testkit.discord.server import DiscordServer
from testkit.openai_server import Call, Reply, ScriptedOpenAI
from testkit.telegram.server import TelegramServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.family("setup")]

ROOT = Path(__file__).parents[2]
KEY = "sk-for-tests-only"
_STYLE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

Start = Callable[..., pexpect.spawn]


def environment(folder: Path, **settings: str) -> dict[str, str]:
    """Return what the program is started with, and nothing else."""
    named = {f"TAPEBOT_{name.upper()}": value for name, value in settings.items()}
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)}
    return {**kept, "LANG": "C.UTF-8", **named}


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Start]:
    started: list[pexpect.spawn] = []

    def start(*arguments: str, **settings: str) -> pexpect.spawn:
        known = environment(tmp_path, **settings) | {"TERM": "xterm-256color"}
        child = at_terminal(tmp_path, known, *arguments, columns=80)
        child.logfile_read = io.StringIO()
        started.append(child)
        return child

    yield start
    for child in started:
        end(child)


@pytest.fixture
async def model() -> AsyncIterator[ScriptedOpenAI]:
    def answer(body):
        if body.get("tools"):
            return Reply("", calls=(Call("add_numbers", '{"a": 17, "b": 25}'),))
        return Reply("ready")

    async with ScriptedOpenAI(answer) as server:
        yield server


def screen(child: pexpect.spawn) -> str:
    return _STYLE.sub("", child.logfile_read.getvalue()).replace("\r", "")


def answer(child: pexpect.spawn, question: str, text: str) -> None:
    child.expect(question)
    # Until this is written, keys would go to the question before.
    child.expect(r"\x1b\[\?25h")
    child.send(f"{text}\r")


def name_model(child: pexpect.spawn, model: ScriptedOpenAI) -> pexpect.spawn:
    answer(child, "Model, as", "openai/test")
    answer(child, "Address of its API", model.base_url)
    answer(child, "Key for its API", KEY)
    return child


def finished(child: pexpect.spawn) -> int | None:
    child.expect(pexpect.EOF)
    child.wait()
    return child.exitstatus


async def test_a_person_goes_from_nothing_to_a_bot_that_runs(tmp_path, terminal, model):
    async with TelegramServer() as telegram, DiscordServer() as discord:
        addresses = {
            "telegram_api_base": telegram.url,
            "discord_api_base": discord.api_url,
            "web_listen": "off",
        }

        def first() -> None:
            child = terminal("setup", **addresses)
            answer(child, r"Language \[en\]:", "")
            answer(child, "Berlin .*:", "Europe/Berln")
            child.expect("did you mean")
            answer(child, "Berlin .*:", "Europe/Berlin")
            name_model(child, model)
            child.expect("answers and calls tools")
            answer(child, "Token of the bot", "123:not-a-token")
            child.expect("Telegram does not accept the token.")
            answer(child, "Enter: correct it", "")
            answer(child, "Token of the bot", telegram.token)
            child.expect(f"https://t.me/{telegram.me.username}")
            answer(child, "Token of the bot", discord.token)
            child.expect("https://discord.com/oauth2/authorize")
            answer(child, "listens", "")
            answer(child, "public address", "")
            answer(child, "Folder of the backups", "")
            child.expect("/claim CODE")
            assert finished(child) == 0
            shown = screen(child)
            for secret in (KEY, "not-a-token", telegram.token, discord.token):
                assert secret not in shown
            assert "TAPEBOT_TELEGRAM_TOKEN" in (tmp_path / ".tapebot" / ".env").read_text()

        def talks() -> None:
            child = terminal(**addresses)
            child.expect("tapebot, openai/test")
            child.expect("/claim")
            child.expect("you>")
            child.send("\x04")
            finished(child)

        # In a thread: the servers are on this event loop.
        await anyio.to_thread.run_sync(first)
        await anyio.to_thread.run_sync(talks)


async def test_a_kill_while_a_model_is_tried_leaves_the_step_unwritten(tmp_path, terminal):
    asked = anyio.Event()

    def answers(_body):
        asked.set()
        return Reply("ready", gate=anyio.Event())

    async with ScriptedOpenAI(answers) as model:

        def begin() -> pexpect.spawn:
            child = terminal("setup", "timezone", "model")
            answer(child, "Berlin .*:", "Europe/Berlin")
            return name_model(child, model)

        child = await anyio.to_thread.run_sync(begin)
        with anyio.fail_after(SECONDS):
            await asked.wait()
        child.kill(signal.SIGKILL)
        await anyio.to_thread.run_sync(child.wait)
    home = tmp_path / ".tapebot"
    env = (home / ".env").read_text()
    assert "TAPEBOT_TIMEZONE=Europe/Berlin" in env
    assert "MODEL" not in env


async def test_what_is_typed_or_pasted_while_a_service_is_asked_is_not_shown(terminal):
    gate, asked = anyio.Event(), anyio.Event()

    def answers(_body):
        asked.set()
        return Reply("ready", gate=gate)

    async with ScriptedOpenAI(answers) as model:
        begin = partial(name_model, terminal("setup", "model", "telegram"), model)
        child = await anyio.to_thread.run_sync(begin)
        await asked.wait()
        child.send("123:too-early-token")
        gate.set()

        def rest() -> None:
            child.expect("Token of the bot")
            child.send("\x03")
            finished(child)

        await anyio.to_thread.run_sync(rest)
    assert "too-early" not in screen(child)


async def test_after_a_failure_enter_keeps_the_answers_that_were_good(tmp_path, terminal, model):
    def correct() -> None:
        child = terminal("setup", "model")
        answer(child, "Model, as", "openai/test")
        answer(child, "Address of its API", "http://127.0.0.1:9")
        answer(child, "Key for its API", KEY)
        child.expect("does not answer")
        answer(child, "Enter: correct it", "")
        answer(child, r"Model, as provider/model \[openai/test\]", "")
        answer(child, r"\[http://127.0.0.1:9\]", model.base_url)
        answer(child, r"Key for its API \[set\]", "")
        child.expect("answers and calls tools")
        assert finished(child) == 0
        assert KEY not in screen(child)

    await anyio.to_thread.run_sync(correct)
    assert KEY in (tmp_path / ".tapebot" / ".env").read_text()


async def test_a_key_goes_to_no_other_provider_after_a_failure(terminal, model):
    def correct() -> None:
        child = terminal("setup", "model")
        answer(child, "Model, as", "openai/test")
        answer(child, "Address of its API", "http://127.0.0.1:9")
        answer(child, "Key for its API", KEY)
        answer(child, "Enter: correct it", "")
        answer(child, "Model, as", "mistral/test")
        answer(child, "Address of its API; empty for the provider's own:", model.base_url)
        answer(child, "Key for its API:", "")
        child.expect("answers and calls tools")
        finished(child)

    await anyio.to_thread.run_sync(correct)
    assert model.headers
    assert not [one for one in model.headers if KEY in str(one)]


# Without a terminal.
