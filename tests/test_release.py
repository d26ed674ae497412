"""What publishes a release agrees with the tree."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from docs.first_day.wheels import build

ROOT = Path(__file__).parents[1]
FILE = ROOT / ".github" / "workflows" / "release.yaml"
WORKFLOW = yaml.safe_load(FILE.read_text())


def test_the_workflow_follows_the_schema_of_workflows():
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "github-workflows"]
    done = subprocess.run([*check, str(FILE)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_job_that_publishes_may_write_or_sign():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    may = {name for name, job in WORKFLOW["jobs"].items() if "permissions" in job}
    assert may == {"publish"}
    assert set(WORKFLOW["jobs"]["publish"]["needs"]) == {"test", "build"}


def test_the_changelog_says_what_is_not_released_yet():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    sections = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert not sections[1:] or sections[1] == project["version"]


@pytest.mark.slow
def test_the_same_commit_gives_the_same_bytes(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    for target in ("wheel", "sdist"):
        one, other = (build(tmp_path / f"{target}{n}", target=target) for n in (1, 2))
        assert one.read_bytes() == other.read_bytes()
