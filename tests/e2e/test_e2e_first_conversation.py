"""The whole program in a folder of its own: pipes, signals, exit codes; the first is started from nothing."""

from __future__ import annotations

import subprocess
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread
import pytest
from kill_checks import check_tape, read_tape
from platform_program import PROGRAM
from preloaded import environment, open_program, run_program

from bot.memory.records.turn_marks import unfold
from bot.tape.entries import TapeEntry
from testkit.openai_server import Failure, ScriptedOpenAI

SECONDS = 60
SESSION = "console:local"
KEY = "sk-proj-4fQ8vYh2LzN7rT1cXw5Kd9"

FIRST = """\
My name is Ada and I prefer dark mode.
remember: I am allergic to peanuts.
/memory
/new
What is my name?
"""


async def run(folder: Path, given: str, *arguments: str, **settings: str) -> tuple[int, str, str]:
    """Run the program to its end; return its exit code, output and errors."""
    command = ["-m", "bot", *arguments]
    how = {"environment": environment(folder, **settings), "cwd": folder, "given": given}
    done = await anyio.to_thread.run_sync(partial(run_program, command, timeout=SECONDS, **how))
    return done.returncode, done.stdout, done.stderr


@asynccontextmanager
async def started(folder: Path, **settings: str):
    """Run the program beside the test; it is killed at the end if it still lives."""
    process = await open_program(
        ["-m", "bot"],
        environment=environment(folder, **settings),
        cwd=folder,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    async with process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


def provider(server: ScriptedOpenAI) -> dict[str, str]:
    """Return the settings that name a scripted server as the model."""
    return {
        "TAPEBOT_MODEL": "openai/test",
        "TAPEBOT_MODEL_API_BASE": server.base_url,
        "TAPEBOT_MODEL_API_KEY": KEY,
    }


def named(entries: list[TapeEntry], name: str) -> list[TapeEntry]:
    marks = (mark for entry in entries for mark in unfold(entry))
    return [mark for mark in marks if mark.name == name]


@pytest.mark.slow
async def test_a_first_conversation_is_remembered_over_a_new_session(tmp_path: Path):
    """No settings, no key: each line is answered, and the name is found after ``/new``."""
    with anyio.fail_after(SECONDS):
        done = await anyio.run_process(
            PROGRAM,
            input=FIRST.encode(),
            check=False,
            cwd=tmp_path,
            env=environment(tmp_path),
        )
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode()
    assert "New session started." in shown
    answer = shown.rpartition("New session started.")[2]
    assert "My name is Ada and I prefer dark mode." in answer
    assert shown.count("No language model is connected") == 2  # once a session

    entries = await read_tape(tmp_path / "home", SESSION)
    check_tape(entries)
    said = [e.payload["content"] for e in entries if e.kind == "message"]
    assert said[0] == "My name is Ada and I prefer dark mode."
    assert said[-2] == "What is my name?"
    assert "Ada" in said[-1]
    versions = [seal.data["version"] for seal in named(entries, "memory/seal")]
    assert versions == sorted(versions)
    assert versions[-1] > versions[0]
    boundary = named(entries, "session/new")[-1]
    prompt = [e for e in entries if e.kind == "system"][-1]
    assert boundary.id < prompt.id < named(entries, "turn.end")[-1].id
    memory = prompt.payload["content"].partition("<memory>")[2].partition("</memory>")[0]
    assert "I am allergic to peanuts." in memory


@pytest.mark.slow
async def test_a_second_run_goes_on_and_repeats_no_answer(tmp_path: Path):
    """What was shown is not shown again; what was said is known."""
    await run(tmp_path, "My name is Ada and I prefer dark mode.\n")
    before = await read_tape(tmp_path / "home", SESSION)
    code, shown, errors = await run(tmp_path, "What do I prefer?\n")
    assert (code, errors) == (0, "")
    assert "dark mode" in shown
    entries = await read_tape(tmp_path / "home", SESSION)
    check_tape(entries)
    assert entries[: len(before)] == before
    assert len(named(entries, "turn.end")) == len(named(entries, "delivery")) == 2
    first = next(e for e in entries if e.payload.get("role") == "assistant")
    assert first.payload["content"].splitlines()[0] not in shown


@pytest.mark.slow
async def test_a_second_process_on_the_same_home_is_refused_in_one_line(tmp_path: Path):
    """The first goes on undisturbed."""
    async with started(tmp_path) as first:
        await first.stdin.send(b"hello\n")
        with anyio.fail_after(SECONDS):
            await first.stdout.receive()
        code, shown, errors = await run(tmp_path, "hello\n")
        assert (code, shown) == (1, "")
        assert len(errors.splitlines()) == 1
        assert str(first.pid) in errors
        assert "TAPEBOT_HOME" in errors
        await first.stdin.send(b"/status\n")
        with anyio.fail_after(SECONDS):
            await first.stdout.receive()
            await first.stdin.aclose()
            assert await first.wait() == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("TAPEBOT_MEMORY_WINDOW", "many"), ("TAPEBOT_MEMORY_WINDOWS", "10")],
)
async def test_a_wrong_setting_is_one_line_that_names_it(tmp_path: Path, name: str, value: str):
    """And nothing is made or begun."""
    code, shown, errors = await run(tmp_path, "hello\n", **{name: value})
    assert (code, shown) == (2, "")
    assert len(errors.splitlines()) == 1
    assert errors.startswith(name)
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
async def test_a_key_that_the_provider_repeats_in_its_error_is_shown_and_kept_nowhere(
    tmp_path: Path,
):
    """Not on the tape, not in the log, not in the answer, not in the traces of debug logging."""
    refusal = Failure(401, f"Incorrect API key provided: {KEY}. Check it.", "invalid_api_key")
    async with ScriptedOpenAI(lambda _: refusal) as server:
        code, shown, errors = await run(
            tmp_path, "hello\n", **provider(server), TAPEBOT_LOG_LEVEL="debug"
        )
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert code == 0
    assert "model" in shown
    assert KEY not in shown + errors
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
