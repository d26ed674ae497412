"""The example of a plug-in (``docs/plugin-example``) is built, installed, tested and used, without a network."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "plugin-example"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-cache-dir")
OFFLINE = ("--no-deps", "--no-index")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.family("the example of a plug-in"),
]


def run(*command: str | Path, said: str = "", env: dict[str, str], cwd: Path | None = None) -> str:
    """Run a program to its end, which is a good one; return what it prints."""
    done = subprocess.run(
        command,
        check=False,
        input=said,
        env=env,
        cwd=cwd,
        text=True,
        capture_output=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, as somebody who begins with it has one."""
    skipped = shutil.ignore_patterns("__pycache__", ".*", "dist")
    return Path(
        shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("plugin") / "mine", ignore=skipped)
    )


@pytest.fixture(scope="module")
def python(source: Path) -> Path:
    """The interpreter of an environment that has tapebot, its libraries and the example's wheel."""
    folder = source.parent
    env = dict(os.environ)
    run(*PIP, "wheel", "--no-build-isolation", *OFFLINE, "-w", folder / "dist", source, env=env)
    [wheel] = (folder / "dist").glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    python = environment / "bin" / "python"
    [packages] = environment.glob("lib/python*/site-packages")
    libraries = sysconfig.get_path("purelib")
    (packages / "libraries.pth").write_text(f"import site; site.addsitedir({libraries!r})\n")
    # Not by the environment's own pip, which it does not have.
    run(*PIP, "--python", python, "install", "--no-build-isolation", *OFFLINE, wheel, env=env)
    return python


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPEBOT_")}
    home = {"HOME": str(tmp_path), "TAPEBOT_HOME": str(tmp_path / "home")}
    return kept | home | {"TAPEBOT_WEB_LISTEN": "off", "PYTHONPATH": str(ROOT)}


def test_its_own_tests_pass(python, source, env):
    quick = ("-p", "no:cacheprovider", "-p", "no:teremok", "-p", "no:schemathesis")
    told = run(python, "-m", "pytest", *quick, env=env, cwd=source)
    assert " passed" in told


def test_its_model_calls_its_tool_and_its_command_is_listed_and_answers(python, env, tmp_path):
    said = "hello\nplease use dice_roll with 2\n/roll 2\n/help\n/status\n"
    told = run(
        *(python, "-m", "bot"), said=said, env=env | {"TAPEBOT_MODEL": "parrot:polly"}, cwd=tmp_path
    ).replace("`", "")
    assert told.startswith("hello\n")
    assert "The die shows 1." in told or "The die shows 2." in told
    assert "You rolled 1." in told or "You rolled 2." in told
    assert "/roll: roll a die" in told
    assert "Model: parrot:polly" in told
    assert "plug-in:" not in told
