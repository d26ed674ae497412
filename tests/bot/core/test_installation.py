"""How tapebot was installed is read from what installers leave, and their commands keep its extras."""

from __future__ import annotations

import json

import pytest

from bot.core import installation
from bot.core.installation import Installation, find_installation

ASKED = "mcp is missing: pip install 'tapebot[mcp]'"


@pytest.fixture(autouse=True)
def from_a_wheel(monkeypatch):
    """The tests run in a checkout."""
    monkeypatch.setattr(installation, "_is_checkout", lambda: False)


def test_pipx_installs_it_again_with_its_extras(tmp_path):
    main = {"package": "tapebot", "package_or_url": "tapebot[telegram, web]"}
    (tmp_path / "pipx_metadata.json").write_text(json.dumps({"main_package": main}))
    found = find_installation(tmp_path)
    assert found.adapt(ASKED) == "mcp is missing: pipx install --force 'tapebot[mcp,telegram,web]'"


def test_uv_tool_installs_it_again_with_its_extras(tmp_path):
    receipt = '[tool]\nrequirements = [{ name = "tapebot", extras = ["web"] }, { name = "x" }]\n'
    (tmp_path / "uv-receipt.toml").write_text(receipt)
    found = find_installation(tmp_path)
    assert found.adapt(ASKED) == "mcp is missing: uv tool install 'tapebot[mcp,web]'"


def test_a_container_starts_a_newer_image(tmp_path):
    (tmp_path / "cmdline").write_bytes(b"/opt/venv/bin/python\0/opt/venv/bin/tapebot\0")
    found = find_installation(tmp_path, tmp_path / "cmdline")
    assert found == Installation("container")


def test_uvx_and_uv_are_told_apart(tmp_path):
    cached = tmp_path / "archive-v0" / "a1b2"
    for folder in (tmp_path, cached):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.13.9\n")
    assert find_installation(tmp_path, tmp_path / "none").kind == "uv"
    assert find_installation(cached, tmp_path / "none").kind == "uvx"


@pytest.mark.parametrize("text", ['{"main_package": ', "[]", '{"main_package": {}}'])
def test_what_an_installer_left_may_be_damaged(tmp_path, text):
    (tmp_path / "pipx_metadata.json").write_text(text)
    assert find_installation(tmp_path) == Installation("pipx")


def test_other_texts_stay_as_they_are():
    text = "run pip install 'tapebot-plugin' and pip install -e '.[local]'"
    assert Installation("pipx").adapt(text) == text
    assert Installation("pip").adapt(ASKED) == ASKED
