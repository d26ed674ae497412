"""What docs/web.md tells programs to do works as it stands there, against the program itself."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from web_program import WebProgram, web_program

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "web.md").read_text(encoding="utf-8")
(PYTHON,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(SHELL,) = re.findall(r"```sh\n(TOKEN=.*?)```", PAGE, re.DOTALL)
(UPLOAD,) = re.findall(r"`(curl [^`]*/chat/uploads[^`]*)`", PAGE)


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[WebProgram]:
    async with web_program(tmp_path) as made:
        await made.start()
        yield made


async def done(program: WebProgram, *command: str, **variables: str) -> str:
    """Do a command of the page, with our address in the place of the usual one; return what it prints."""
    place = program.url.removeprefix("http://")
    run = await anyio.run_process(
        [part.replace("127.0.0.1:8020", place) for part in command],
        env={**program.environment, **variables},
        cwd=program.folder,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.decode()


async def test_a_program_chats_as_the_page_shows(program: WebProgram) -> None:
    token = await program.run("web", "token", "test")
    question = '"What is my name?"'
    assert question in PYTHON
    told = PYTHON.replace(question, '"My name is Ada"')
    assert "Kept." in await done(program, sys.executable, "-c", told, TOKEN=token)
    assert ": My name is Ada" in await done(program, sys.executable, "-c", PYTHON, TOKEN=token)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page's examples are of curl")
async def test_a_program_reads_commands_and_brings_files_as_the_page_shows(
    program: WebProgram,
) -> None:
    token = await program.run("web", "token", "test")
    told = PYTHON.replace("What is my name?", "remember: My name is Ada")
    await done(program, sys.executable, "-c", told, TOKEN=token)
    # There is no terminal here whose conversation could be looked at.
    shell = SHELL.replace("tapebot ", f"{sys.executable} -m bot ").replace("console:", "web:")
    answers = await done(program, "sh", "-ec", shell.replace("curl ", "curl --fail --silent "))
    assert '"tape":"web:local"' in answers
    assert "My name is Ada" in answers
    assert "Evidence:" in answers
    (program.folder / "note.txt").write_text("Lisbon is hot")
    assert '"id":"' in await done(program, "sh", "-c", UPLOAD, TOKEN=token)
