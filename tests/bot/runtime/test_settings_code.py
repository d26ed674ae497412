"""Where a model is offered to run code, and what is said where the sandbox is missing."""

from __future__ import annotations

import sys

import pytest

from bot.agent.code import sandbox
from bot.bus.media.blobs import FolderBlobs
from bot.cli.doctor import run_checks
from bot.core.errors import SettingsError
from bot.runtime.app.code_tools import make_code_tools
from bot.runtime.settings import load_settings


@pytest.fixture
def offered(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def names(**settings) -> list[str]:
        made = make_code_tools(load_settings(**settings), FolderBlobs(tmp_path / "blobs"))
        return [tool.name for tool in made]

    return names


@pytest.fixture
def without_sandbox(monkeypatch):
    monkeypatch.setattr(sandbox, "find_spec", lambda _: None)


def test_it_is_offered_where_the_sandbox_is_unless_the_owner_says_no(offered, tmp_path):
    before = set(sys.modules)
    assert offered() == ["run.python"]
    assert offered(code="on") == ["run.python"]
    assert offered(code="OFF") == []
    assert not {"wasmtime", "componentize_py"} & (set(sys.modules) - before)
    assert not load_settings().home.exists()


def test_without_a_sandbox_it_is_not_offered(offered, without_sandbox):
    assert offered() == []
    with pytest.raises(SettingsError, match="TAPEBOT_CODE: needs wasmtime, componentize_py: pip"):
        offered(code="on")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (None, "ok the model runs no code: there is no sandbox"),
        ("on", "bad wasmtime, componentize_py is missing"),
        ("off", "ok the model runs no code: TAPEBOT_CODE=off"),
    ],
)
async def test_the_doctor_says_whether_there_is_a_sandbox(offered, without_sandbox, code, told):
    [found] = [each for each in await run_checks(load_settings(code=code)) if each.area == "code"]
    assert f"{found.level} {found.text}" == told
