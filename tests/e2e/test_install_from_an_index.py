"""pipx, ``uv tool`` and ``uvx`` get tapebot from a package index, for a person with an empty home folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from installs import UV
from package_index import serving
from wheels import write_index

from docs.first_day.wheels import ROOT, build, tree_of_version

pytestmark = [
    pytest.mark.slow,
    pytest.mark.family("installs from an index"),
    pytest.mark.timeout(600),
]

THIS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
NEWER = "9.1.0"
PIPX = (sys.executable, "-m", "pipx")


@dataclass(frozen=True)
class Tool:
    """What a person types to get tapebot, to run it, and to upgrade it."""

    install: tuple[str, ...] | None
    run: tuple[str, ...]
    upgrade: tuple[str, ...] | None
    add_an_extra: str


TOOLS = {
    "pipx": Tool(
        (*PIPX, "install", "tapebot"),
        ("tapebot",),
        (*PIPX, "upgrade", "tapebot"),
        "pipx install --force 'tapebot[telegram]'",
    ),
    "uv tool": Tool(
        (UV, "tool", "install", "tapebot"),
        ("tapebot",),
        (UV, "tool", "upgrade", "tapebot"),
        "uv tool install 'tapebot[telegram]'",
    ),
    "uvx": Tool(
        None,
        (UV, "tool", "run", "tapebot"),
        (UV, "tool", "run", "tapebot@latest", "--version"),
        "uvx --from 'tapebot[telegram]' tapebot",
    ),
}


@dataclass(frozen=True)
class Person:
    """Somebody whose home folder was empty, who has a Python and knows one index."""

    home: Path
    python: str
    index: str

    def run(self, *command: str, given: str = "", code: int = 0, **variables: str) -> str:
        """Run a command, which ends with this exit code; return all that it printed."""
        path = f"{self.home / '.local' / 'bin'}:/usr/bin:/bin"
        done = subprocess.run(
            [shutil.which(command[0], path=path) or command[0], *command[1:]],
            cwd=self.home,
            env={
                "HOME": str(self.home),
                "PATH": path,
                "LANG": "C.UTF-8",
                "TZ": "UTC",
                "PIP_CONFIG_FILE": os.devnull,
                "PIP_INDEX_URL": self.index,
                "PIPX_DEFAULT_BACKEND": "pip",
                "PIPX_DEFAULT_PYTHON": self.python,
                "UV_DEFAULT_INDEX": self.index,
                "UV_NO_CONFIG": "1",
                "UV_PYTHON": self.python,
                "UV_PYTHON_DOWNLOADS": "never",
                **variables,
            },
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
            check=False,
        )
        assert done.returncode == code, (command, done.stdout)
        return done.stdout


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("newer")
    return build(folder / "dist", tree=tree_of_version(folder / "tree", NEWER, "- Sheep.\n"))


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of tapebot and of what it needs."""
    folder = tmp_path_factory.mktemp("stocked")
    write_index(folder / "index", [build(folder / "dist")], extra=["pip"])
    return folder / "index"


@pytest.fixture
def person(stocked: Path, tmp_path: Path) -> Iterator[Person]:
    home, index = tmp_path / "home", tmp_path / "index"
    # Who installs by uv has it among their commands; the system's pip may be too old for their Python.
    (home / ".local" / "bin").mkdir(parents=True)
    (home / ".local" / "bin" / "uv").symlink_to(UV)
    shutil.copytree(stocked, index)
    with serving(index) as url:
        yield Person(home, sys.executable, url)


@pytest.mark.parametrize("name", TOOLS)
def test_it_is_installed_talks_and_is_upgraded(person, newer, tmp_path, name):
    tool = TOOLS[name]
    if tool.install is not None:
        person.run(*tool.install)
    assert person.run(*tool.run, "--version").splitlines()[-1] == THIS
    said = person.run(*tool.run, given="My cat is called Mia.\nWhat is my cat called?\n")
    assert "Mia" in said.splitlines()[-1]
    assert "Nothing bad" in person.run(*tool.run, "doctor")
    telegram = person.run(
        *tool.run,
        code=1,
        TAPEBOT_TELEGRAM_TOKEN="123456789:" + "a" * 35,
        TAPEBOT_WEB_LISTEN="off",
    )
    assert tool.add_an_extra in telegram
    shutil.copy(newer, tmp_path / "index")
    person.run(*tool.upgrade)
    assert person.run(*tool.run, "--version").splitlines()[-1] == NEWER
    assert "Mia" in person.run(*tool.run, given="What is my cat called?\n").splitlines()[-1]
