"""The setup tries answers against real services, and writes them where they count."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.runtime.settings import load_settings
from bot.runtime.setup.setup import Setup
from bot.runtime.setup.steps import STEPS
from testkit.discord.server import DiscordServer
from testkit.openai_server import Call, Failure, Reply, ScriptedOpenAI

STEP = {step.name: step for step in STEPS}
KEY = "sk-for-tests-only"


@pytest.fixture(autouse=True)
def home(bare) -> Path:
    return bare / ".tapebot"


def made() -> Setup:
    return Setup(load_settings())


def answers(body):
    if body.get("tools"):
        return Reply("", calls=(Call("add_numbers", '{"a": 17, "b": 25}'),))
    return Reply("ready")


# Checks.


async def test_a_refused_key_is_told_with_what_to_do_and_not_shown():
    refusal = Failure(401, f"Incorrect API key provided: {KEY}", "invalid_api_key")
    async with ScriptedOpenAI(lambda _body: refusal) as server:
        given = {"model": "openai/x", "model_api_base": server.base_url, "model_api_key": KEY}
        outcome = await made().check(STEP["model"], given)
    assert not outcome.works
    assert "Correct" in outcome.remedy
    assert KEY not in outcome.text + outcome.remedy


async def test_a_discord_bot_that_may_not_read_messages_is_refused(monkeypatch):
    async with DiscordServer(portal_intents=0) as discord:
        monkeypatch.setenv("TAPEBOT_DISCORD_API_BASE", discord.api_url)
        outcome = await made().check(STEP["discord"], {"discord_token": discord.token})
    assert not outcome.works
    assert "Message Content Intent" in outcome.text
    assert f"/applications/{discord.world.bot.id}/bot" in outcome.remedy


# Where answers go.


def test_what_the_toml_file_has_is_changed_there_and_leaves_it_for_a_secret(home):
    home.mkdir()
    toml, env = home / "tapebot.toml", home / ".env"
    toml.write_text(
        '# mine\ntimezone = "UTC" # here\nmodel = "offline"\n[models.x]\nmodel = "openai/y"\n'
    )
    setup = made()
    assert setup.save(STEP["timezone"], {"timezone": "Europe/Berlin"}).path == toml
    assert not env.exists()
    given = {"model": "openai/x", "model_api_base": "http://127.0.0.1:9/v1", "model_api_key": KEY}
    assert setup.save(STEP["model"], given).path == env
    told = toml.read_text()
    assert told.startswith('# mine\ntimezone = "Europe/Berlin" # here\n')
    assert ("offline" in told, KEY in told, "openai/y" in told) == (False, False, True)
    assert load_settings().model == "openai/x"
    setup.save(STEP["timezone"], {"timezone": None})
    assert "timezone" not in toml.read_text()


def test_a_model_takes_address_and_key_of_the_one_before_along(home):
    setup = made()
    own = {"model": "openai/x", "model_api_base": "http://127.0.0.1:9/v1", "model_api_key": KEY}
    setup.save(STEP["model"], own)
    setup.save(STEP["model"], {"model": "ollama_chat/qwen3"})
    settings = load_settings()
    assert (settings.model, settings.model_api_base, settings.model_api_key) == (
        "ollama_chat/qwen3",
        None,
        None,
    )
    assert KEY not in (home / ".env").read_text()


def test_a_key_that_is_removed_is_gone_from_both_files(home, tmp_path):
    home.mkdir()
    (home / ".env").write_text(f"TAPEBOT_MODEL=openai/x\nOPENAI_API_KEY={KEY}\n")
    (tmp_path / ".env").write_text("TAPEBOT_MAX_STEPS=3\n")
    setup = made()
    setup.save(STEP["model"], {"model_api_key": None})
    assert KEY not in (home / ".env").read_text()
    assert not setup.shown(STEP["model"].questions[2], {})


# The home's .env.


def test_dotenv_of_the_home_is_read_after_that_of_the_working_directory(home, tmp_path):
    home.mkdir()
    (home / ".env").write_text("TAPEBOT_MODEL=offline\nTAPEBOT_MAX_STEPS=2\n")
    (tmp_path / ".env").write_text("TAPEBOT_MAX_STEPS=3\n")
    (home / "tapebot.toml").write_text('model = "openai/x"\n')
    settings = load_settings()
    assert (settings.model, settings.max_steps) == ("offline", 3)
