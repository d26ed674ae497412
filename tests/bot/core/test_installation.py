"""How tapebot was installed is read from what installers leave, and their commands keep its extras."""

from __future__ import annotations

import json

import pytest

from bot.core import installation
from bot.core.installation import find_installation

ASKED = "mcp is missing: pip install 'tapebot[mcp]'"


@pytest.fixture(autouse=True)
def from_a_wheel(monkeypatch):
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
