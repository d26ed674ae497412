"""The doctor finds what is wrong, says what to do, and shows no secret."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from bot.cli.doctor import CheckResult, exit_code, report, run_checks
from bot.core.errors import ModelAuthError, SettingsError
from bot.runtime.settings import PREFIX, load_settings
from testkit.telegram.server import TelegramServer

HOLDER = r"""
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    sys.stdout.write("held\n")
    sys.stdout.flush()
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    """A fresh home that is only its owner's, and no variable that names a model or a key."""
    for name in list(os.environ):
        if name.upper().startswith(PREFIX) or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    tmp_path.chmod(0o700)
    monkeypatch.setenv("HOME", str(tmp_path))
    # With a probe, the doctor would search the web.
    monkeypatch.setenv("TAPEBOT_WEB_SEARCH", "off")
    monkeypatch.chdir(tmp_path)


def made_home():
    home = Path(".tapebot")
    home.mkdir(mode=0o700)
    return home


async def found(area, probe=None, **settings):
    """Return what the doctor finds in one area, as pairs of level and text with remedy."""
    findings = await run_checks(load_settings(**settings), probe=probe)
    return [(each.level, f"{each.text} {each.remedy}") for each in findings if each.area == area]


async def test_a_fresh_machine_is_well_and_nothing_is_made_on_it(tmp_path):
    findings = await run_checks(load_settings())
    assert exit_code(findings) == 0
    assert {each.level for each in findings if each.area not in {"terminal", "disk"}} == {"ok"}
    assert list(tmp_path.iterdir()) == []


async def test_each_model_preset_is_checked():
    home = made_home()
    (home / "tapebot.toml").write_text(
        '[models.cheap]\nmodel = "openai/x"\n[models.keyed]\nmodel = "openai/x"\n'
        'api_key = "sk-1234567890"\n[models.home]\nmodel = "ollama_chat/qwen3"\nprivate = true\n'
    )
    (home / "tapebot.toml").chmod(0o600)
    told = dict(text.split(": ", 1) for _, text in await found("model"))
    assert told["preset cheap, openai/x"].startswith("it has no key")
    assert told["preset keyed, openai/x"].strip() == "its key is in tapebot.toml"
    assert told["preset home, ollama_chat/qwen3"].strip() == "ollama_chat needs no key"


async def test_looking_at_a_home_leaves_it_as_it_was():
    home = made_home()
    await run_checks(load_settings())
    assert list(home.iterdir()) == []


async def test_wrong_settings_are_told_line_by_line_and_are_bad():
    findings = await run_checks(SettingsError("one is wrong\nanother is wrong"))
    texts = [each.text for each in findings if each.area == "settings"]
    assert texts == ["one is wrong", "another is wrong"]
    assert exit_code(findings) == 1
    assert "python" in {each.area for each in findings}


async def test_a_home_that_takes_writes_is_well():
    made_home()
    ((level, text),) = await found("home")
    assert level == "ok"
    assert "reach the disk" in text


async def test_a_home_that_is_a_file_is_bad():
    Path(".tapebot").write_text("")
    ((level, text),) = await found("home")
    assert level == "bad"
    assert "TAPEBOT_HOME" in text


async def test_a_home_that_takes_no_file_is_bad():
    """The system's own read-only folder, for root can write everywhere else."""
    levels = [level for level, _ in await found("home", home="/proc/sys")]
    assert "bad" in levels


async def test_files_that_others_can_open_are_a_warning_with_the_command_that_mends_it():
    home = made_home()
    home.chmod(0o755)
    (home / "tapebot.toml").write_text("")
    (home / "tapebot.toml").chmod(0o644)
    Path(".env").write_text("")
    Path(".env").chmod(0o644)
    text = " ".join(text for level, text in await found("home") if level == "warn")
    for part in ("chmod 600 '.env'", f"chmod 700 '{home.absolute()}'", "chmod -R go-rwx"):
        assert part in text
    home.chmod(0o700)
    assert [level for level, _ in await found("home")] == ["warn", "ok"]


@pytest.mark.parametrize("owner", ["4321", "", "junk"])
async def test_a_running_tapebot_is_seen_and_not_disturbed(owner):
    tapes = made_home() / "tapes"
    tapes.mkdir(mode=0o700)
    (tapes / ".owner").write_text(f"{owner}\n")
    command = [sys.executable, "-c", HOLDER, str(tapes / ".lock")]
    async with await anyio.open_process(command, stderr=None) as holder:
        with anyio.fail_after(30):
            assert await holder.stdout.receive() == b"held\n"
            for _ in range(2):
                ((level, text),) = await found("tapes")
                expected = "process 4321" if owner == "4321" else "unknown process"
                assert level == "ok"
                assert f"in use by a running tapebot ({expected})" in text
            await holder.stdin.aclose()
            await holder.wait()
    assert await found("tapes") == [("ok", "not in use ")]


async def test_the_size_of_what_every_prompt_repeats_is_told():
    folder = made_home() / "workspace"
    folder.mkdir()
    (folder / "AGENTS.md").write_text("é" * 5)
    (folder / "SOUL.md").write_text("x" * 40_000)
    (folder / "USER.md").write_bytes(b"\xff")
    findings = dict(await found("workspace"))
    assert "SOUL.md has 40000 bytes" in findings["warn"]
    assert "USER.md cannot be read" in findings["bad"]
    assert "AGENTS.md 10 bytes" in findings["ok"]


async def test_a_workspace_that_was_set_and_is_not_there_is_bad():
    assert [level for level, _ in await found("workspace", workspace="nowhere")] == ["bad"]


async def test_the_offline_responder_needs_nothing():
    assert [level for level, _ in await found("model")] == ["ok"]


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/gpt-5-mini", "OPENAI_API_KEY"),
        ("gpt-5-mini", "OPENAI_API_KEY"),
        ("claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-3-pro", "GEMINI_API_KEY"),
    ],
)
async def test_a_missing_key_is_bad_and_its_variable_is_named(model, variable, monkeypatch):
    ((level, text),) = await found("model", model=model)
    assert level == "bad"
    assert variable in text
    monkeypatch.setenv(variable, "some-secret-value")
    assert [level for level, _ in await found("model", model=model)] == ["ok"]


async def test_a_key_in_the_settings_counts_for_the_main_models_provider_alone():
    settings = {"model": "openai/a", "model_api_key": "some-secret-value"}
    fallbacks = {"fallback_models": "openai/b,groq/c"}
    findings = await found("model", **settings, **fallbacks)
    assert [level for level, _ in findings] == ["ok", "ok", "warn"]
    assert "GROQ_API_KEY" in findings[2][1]


async def test_an_address_of_ones_own_may_want_no_key():
    given = {"model": "openai/local", "model_api_base": "http://localhost:1234/v1"}
    assert [level for level, _ in await found("model", **given)] == ["warn"]
    assert [level for level, _ in await found("model", model="ollama_chat/qwen3")] == ["ok"]


async def test_a_model_file_is_looked_at():
    Path("bad.gguf").write_bytes(b"nothing")
    Path("good.gguf").write_bytes(b"GGUF" + bytes(100))
    models = ["gguf:bad.gguf", "gguf:good.gguf", "gguf:none.gguf"]
    findings = [await found("model", model=model) for model in models]
    assert [finding[0][0] for finding in findings] == ["bad", "ok", "bad"]


async def test_the_model_is_called_only_where_a_call_is_given():
    async def answers():
        return "hello"

    async def fails():
        raise ModelAuthError("refused: api_key=some-secret-value")

    async def hangs():
        await anyio.sleep_forever()

    assert ("ok", "it answers: 'hello' ") in await found("model", answers)
    level, text = (await found("model", fails))[-1]
    assert level == "bad"
    assert "refused" in text
    assert "some-secret-value" not in text
    level, text = (await found("model", hangs, model_timeout=0.01))[-1]
    assert level == "bad"
    assert "no answer" in text


async def test_no_secret_is_in_the_report(monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", "another-secret")

    async def fails():
        raise ModelAuthError("the server said some-secret-value and another-secret")

    settings = load_settings(model="openai/a", model_api_key="some-secret-value")
    text = report(await run_checks(settings, probe=fails))
    assert "the server said" in text
    assert "-secret" not in text


def test_the_report_shows_each_finding_its_remedy_and_the_verdict():
    findings = [
        CheckResult("home", "ok", "fine"),
        CheckResult("disk", "warn", "little", "Free some."),
        CheckResult("model", "bad", "gone", "Bring it back."),
    ]
    lines = report(findings).splitlines()
    assert lines[0].split() == ["ok", "home", "fine"]
    assert lines[2].strip() == "-> Free some."
    assert lines[-1] == "1 bad, 1 warning."
    assert (exit_code(findings), exit_code(findings[:2])) == (1, 0)
    assert report(findings[:1]).endswith("Nothing bad, no warnings.")


async def test_a_platform_is_asked_about_its_token_only_when_probed(tmp_path, monkeypatch):
    async with TelegramServer() as telegram:
        good = {"home": tmp_path, "telegram_api_base": telegram.url}
        settings = load_settings(**good, telegram_token=telegram.token)
        texts = [each.text for each in await run_checks(settings)]
        assert not telegram.records.calls

        async def answer() -> str:
            return "ready"

        found = {each.text: each.level for each in await run_checks(settings, probe=answer)}
        assert found["Telegram: connected as @tape_bot"] == "ok"
        wrong = load_settings(**good, telegram_token="123456789:AAwrongwrongwrongwrongwrongwr")
        found = {each.text: each.level for each in await run_checks(wrong, probe=answer)}
        assert found["Telegram does not accept the token"] == "bad"
        assert "wrongwrong" not in str(found)
    assert any("doctor --probe" in text for text in texts)
    found = {each.text: each.level for each in await run_checks(settings, probe=answer)}
    assert found["Telegram cannot be reached"] == "warn"
