"""How tapebot was installed is read from what installers leave, and their commands keep its extras."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from bot.cli.newest_release import Release, is_newer
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
    assert found.upgrade_command() == "pipx upgrade tapebot"


def test_uv_tool_installs_it_again_with_its_extras(tmp_path):
    receipt = '[tool]\nrequirements = [{ name = "tapebot", extras = ["web"] }, { name = "x" }]\n'
    (tmp_path / "uv-receipt.toml").write_text(receipt)
    found = find_installation(tmp_path)
    assert found.adapt(ASKED) == "mcp is missing: uv tool install 'tapebot[mcp,web]'"
    assert found.upgrade_command() == "uv tool upgrade tapebot"


def test_a_container_starts_a_newer_image(tmp_path):
    (tmp_path / "cmdline").write_bytes(b"/opt/venv/bin/python\0/opt/venv/bin/tapebot\0")
    found = find_installation(tmp_path, tmp_path / "cmdline")
    assert found == Installation("container")
    assert found.upgrade_command().startswith("docker compose build")


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


def test_versions_are_ordered():
    ordered = ["0.1.0", "0.1.1.dev1", "0.1.1rc1", "0.1.1", "0.2", "0.10.0", "1.0rc1", "1.0"]
    assert [is_newer(b, a) for a, b in pairwise(ordered)] == [True] * 7
    assert not is_newer("1.0", "1.0.0")
    assert not is_newer("1.0.0", "1.0")


def test_only_the_changes_of_newer_versions_are_told():
    text = "# Log\n\n## Unreleased\n\n- x\n\n## [0.3.0] - 2027\n\n- c\n\n## 0.2.0\n\n- b\n\n## 0.1.0\n\n- a\n"
    told = Release("0.3.0", None, {}, text).changes_since("0.1.0")
    assert told == "## [0.3.0] - 2027\n\n- c\n\n## 0.2.0\n\n- b"
