"""``tapebot upgrade --check`` asks the index that pip uses, and says what the newer version brings and needs."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from installs import Install, install
from package_index import serving

from docs.first_day.wheels import build, tree_of_version

pytestmark = [pytest.mark.slow, pytest.mark.family("upgrade check")]

NEWS = "### Added\n\n- Dreams of electric sheep."


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Install:
    """An install with pip, as in a virtual environment that ``python -m venv`` makes."""
    return install(tmp_path_factory.mktemp("stranger"), packages=("pip",))


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a version to come."""
    folder = tmp_path_factory.mktemp("newer")
    return build(folder / "dist", tree=tree_of_version(folder / "tree", "9.1.0", NEWS))


@pytest.fixture
def index(tmp_path: Path, stranger: Install) -> Iterator[str]:
    """A package index on this machine, which has the installed version."""
    publish(tmp_path, stranger.wheel)
    with serving(tmp_path / "index") as url:
        yield url


def publish(tmp_path: Path, wheel: Path) -> None:
    (tmp_path / "index").mkdir(exist_ok=True)
    shutil.copy(wheel, tmp_path / "index")


def check(stranger: Install, index: str, home: Path, **variables: str):
    pip = {"PIP_INDEX_URL": index, "PIP_CONFIG_FILE": "/dev/null", "UV_INDEX_URL": index}
    return stranger.run("upgrade --check", home=home, **pip, **variables)


def test_the_newest_version_needs_nothing(stranger, index, tmp_path):
    said = check(stranger, index, tmp_path / "home")
    assert said.returncode == 0, said.stderr
    assert "There is nothing to do." in said.stdout


def test_a_newer_version_is_told_with_its_changes_and_the_command(stranger, newer, index, tmp_path):
    publish(tmp_path, newer)
    said = check(stranger, index, tmp_path / "home")
    assert said.returncode == 0, said.stderr
    assert "newest: 9.1.0" in said.stdout
    assert "- Dreams of electric sheep." in said.stdout
    assert "## Unreleased" not in said.stdout
    assert "uv pip install --upgrade tapebot" in said.stdout
    assert not (tmp_path / "home").exists()
    assert stranger.run("--version", home=tmp_path / "home").stdout != "9.1.0\n"


def test_it_looks_for_a_recent_backup(stranger, newer, index, tmp_path):
    publish(tmp_path, newer)
    home, backups = tmp_path / "home", tmp_path / "backups"
    backups.mkdir()
    set_up = {"TAPEBOT_BACKUP_TO": str(backups), "TAPEBOT_BACKUP_PASSPHRASE": "ten letters or more"}
    assert "TAPEBOT_BACKUP_TO names no folder" in check(stranger, index, home).stdout
    assert f"there is none in {backups}" in check(stranger, index, home, **set_up).stdout


def test_a_version_that_does_not_open_this_home_is_not_offered(stranger, index, tmp_path):
    tree = tree_of_version(tmp_path / "tree", "9.2.0", NEWS)
    (tree / "bot" / "compatibility.toml").write_text('homes_since = "9.0.0"\n')
    publish(tmp_path, build(tmp_path / "dist", tree=tree))
    said = check(stranger, index, tmp_path / "home")
    assert said.returncode == 1
    assert "9.2.0 opens homes since 9.0.0" in said.stdout
    assert "pip install" not in said.stdout


def test_without_a_network_it_says_so(stranger, tmp_path):
    said = check(stranger, "http://127.0.0.1:9/simple", tmp_path / "home")
    assert said.returncode == 1
    assert said.stderr == (
        "tapebot: The package index cannot be reached. Is this machine online?\n"
    )


def test_an_index_without_it_is_told_apart(stranger, index, tmp_path):
    said = check(stranger, index.replace("simple", "other"), tmp_path / "home")
    assert said.returncode == 1
    assert "no release of tapebot that fits this Python" in said.stderr


def test_uv_asks_where_there_is_no_pip(newer, index, tmp_path):
    publish(tmp_path, newer)
    tools = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    said = check(install(tmp_path / "no-pip"), index, tmp_path / "home", PATH=tools)
    assert said.returncode == 0, said.stderr
    assert "- Dreams of electric sheep." in said.stdout
