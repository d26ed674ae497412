"""What docs/web.md tells programs to do works as it stands there, against the program itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.ports import kept_port

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
SECONDS = 60
PAGE = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
(PYTHON,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SHELL,) = re.findall(r"```sh\n(TOKEN=.*?)```", PAGE, re.DOTALL)
(UPLOAD,) = re.findall(r"`(curl [^`]*/chat/uploads[^`]*)`", PAGE)


class Program:
    """The program with its site, and what a person types beside it."""

    def __init__(self, home: Path, port: int) -> None:
        self._home, self._place = home, f"127.0.0.1:{port}"
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "TAPEBOT_HOME": str(home / "home"),
            "TAPEBOT_WEB_LISTEN": self._place,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bot"],
            env=self._environment,
            cwd=home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        # It is told once the site answers.
        self.told = next(line for line in self.process.stdout if "Web: " in line)

    def run(self, *command: str, **variables: str) -> str:
        """Run a command of the page, with our address in the place of the usual one."""
        done = subprocess.run(
            [part.replace("127.0.0.1:8020", self._place) for part in command],
            env={**self._environment, **variables},
            cwd=self._home,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    with kept_port() as port:
        made = Program(tmp_path, port)
        yield made
        made.process.terminate()
        assert made.process.wait(SECONDS) == 0
        assert made.process.stdout is not None
        made.process.stdout.close()


def test_a_program_chats_as_the_page_shows(program: Program) -> None:
    token = program.run(sys.executable, "-m", "bot", "web", "token", "test").strip()
    question = '"What is my name?"'
    assert question in PYTHON
    told = PYTHON.replace(question, '"My name is Ada"')
    assert "Ada" in program.run(sys.executable, "-c", told, TOKEN=token)
    assert "Your name is Ada" in program.run(sys.executable, "-c", PYTHON, TOKEN=token)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's examples are of curl")
def test_a_program_reads_commands_and_brings_files_as_the_page_shows(
    program: Program, tmp_path: Path
) -> None:
    token = program.run(sys.executable, "-m", "bot", "web", "token", "test").strip()
    program.run(
        sys.executable, "-c", PYTHON.replace("What is my name?", "My name is Ada"), TOKEN=token
    )
    # There is no terminal here whose conversation could be looked at.
    shell = SHELL.replace("tapebot ", f"{sys.executable} -m bot ").replace("console:", "web:")
    answers = program.run("sh", "-ec", shell.replace("curl ", "curl --fail --silent "))
    assert '"tape":"web:local"' in answers
    assert "The user's name is Ada." in answers
    assert "Evidence:" in answers
    (tmp_path / "note.txt").write_text("Lisbon is hot")
    assert '"id":"' in program.run("sh", "-c", UPLOAD, TOKEN=token)
