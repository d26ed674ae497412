"""The doctor finds what is wrong, says what to do, and shows no secret."""

from __future__ import annotations

import errno
import json
import platform
import sys
from pathlib import Path

import anyio
import pytest

from bot.cli.doctor import exit_code, report, report_json, run_checks, run_doctor
from bot.runtime.settings import load_settings
from testkit.openai_server import Failure, ScriptedOpenAI
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
def clean(bare, monkeypatch):
    """A fresh home that is only its owner's."""
    bare.chmod(0o700)
    # With a probe, the doctor would search the web.
    monkeypatch.setenv("TAPEBOT_WEB_SEARCH", "off")


def made_home():
    home = Path(".tapebot")
    home.mkdir(mode=0o700)
    return home


async def found(area, **settings):
    """Return what the doctor finds in one area, as pairs of level and text with remedy."""
    findings = await run_checks(load_settings(**settings))
    return [(each.level, f"{each.text} {each.remedy}") for each in findings if each.area == area]


async def test_a_fresh_machine_is_well_and_nothing_is_made_on_it(tmp_path):
    findings = await run_checks(load_settings())
    assert exit_code(findings) == 0
    assert {each.level for each in findings if each.area not in {"terminal", "disk"}} == {"ok"}
    assert list(tmp_path.iterdir()) == []


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


async def test_a_running_tapebot_is_seen_and_not_disturbed():
    tapes = made_home() / "tapes"
    tapes.mkdir(mode=0o700)
    (tapes / ".owner").write_text("4321\n")
    command = [sys.executable, "-c", HOLDER, str(tapes / ".lock")]
    async with await anyio.open_process(command, stderr=None) as holder:
        with anyio.fail_after(30):
            assert await holder.stdout.receive() == b"held\n"
            for _ in range(2):
                ((level, text),) = await found("tapes")
                assert level == "ok"
                assert "in use by a running tapebot (process 4321)" in text
            await holder.stdin.aclose()
            await holder.wait()
    assert await found("tapes") == [("ok", "not in use ")]


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


async def test_no_secret_is_in_the_report(monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", "another-secret")

    said = Failure(400, "the server said some-secret-value and another-secret")
    async with ScriptedOpenAI(lambda _body: said) as server:
        base, key = server.base_url, "some-secret-value"
        settings = load_settings(model="openai/a", model_api_key=key, model_api_base=base)
        results = await run_checks(settings, probe=True)
    assert exit_code(results) == 1
    for text in (report(results), report_json(results)):
        assert "the server said" in text
        assert "-secret" not in text


async def test_a_platform_is_asked_about_its_token_only_when_probed(tmp_path, monkeypatch):
    async with TelegramServer() as telegram:
        good = {"home": tmp_path, "telegram_api_base": telegram.url}
        settings = load_settings(**good, telegram_token=telegram.token)
        texts = [each.text for each in await run_checks(settings)]
        assert not telegram.records.calls
        found = {each.text: each.level for each in await run_checks(settings, probe=True)}
        assert found["Telegram: connected as @tape_bot"] == "ok"
        wrong = load_settings(**good, telegram_token="123456789:AAwrongwrongwrongwrongwrongwr")
        found = {each.text: each.level for each in await run_checks(wrong, probe=True)}
        assert found["Telegram does not accept the token"] == "bad"
        assert "wrongwrong" not in str(found)
    assert "Telegram" in texts
    found = {each.text: each.level for each in await run_checks(settings, probe=True)}
    assert found["Telegram cannot be reached"] == "warn"


async def test_what_was_not_called_is_named_and_nothing_when_all_was(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    settings = load_settings(model="openai/a", telegram_token="123456789:AAwrongwrongwrong")
    results = await run_checks(settings)
    last = report(results).splitlines()[-2:]
    assert last == ["Not called without `--probe`: openai/a, Telegram.", "Nothing bad, 1 warning."]
    told = json.loads(report_json(results))
    assert told["not_called"] == ["openai/a", "Telegram"]
    assert {"area": "python", "level": "ok", "text": platform.python_version(), "remedy": ""} in (
        told["results"]
    )
    assert "Not called" not in report(await run_checks(load_settings()))


def test_a_folder_that_cannot_be_entered_is_told_in_the_report(monkeypatch, capsys):
    def refused():
        raise PermissionError(errno.EACCES, "Permission denied", "/elsewhere/.env")

    monkeypatch.setattr("bot.cli.doctor.export_dotenv", refused)
    assert run_doctor(probe=False, as_json=False) == 1
    said = capsys.readouterr().out
    assert "/elsewhere/.env cannot be read: Permission denied" in said
    assert "python" in said
