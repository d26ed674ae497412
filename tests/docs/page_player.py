"""Plays a page of the docs: does what its blocks say in a scratch home, and compares what came out with what they show.

Blocks of a page, from top to bottom, all in one home:

- ``chat``: a line after ``>`` (or ``you>``) is typed at the terminal, where no model is connected; all other
  lines are what the person is shown for it.
- ``console``: a line after ``$`` is run by a shell; all other lines are what it prints. ``sh`` has commands alone.
- ``python``: is run while the program serves its site (see below), with what the shell exported.
- ``<!-- before ... -->``: lines after ``>`` and ``$`` that a reader does not see.
- ``<!-- model ... -->``: from here on a model answers; each line is one answer of it: a text, or ``tool_name {...}``.
- ``<!-- serve -->``: from here on the program runs with its site at 127.0.0.1:8020, until ``<!-- stop -->``.

A line ``…`` stands for any lines, ``…`` in a line for any words. What differs from run to run is compared by its form.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from preloaded import Forked, open_program, run_program

from testkit.openai_server import Call, Reply, ScriptedOpenAI
from testkit.ports import kept_port

ROOT = Path(__file__).parents[2]
SECONDS = 60
PLAYED = frozenset({"chat", "console", "sh", "python"})
"""Kinds of blocks that hold commands."""

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>[\w{}-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$"
    r"|^ *<!-- (?P<order>before|model|serve|stop)\b(?P<hidden>.*?)-->$",
    re.MULTILINE | re.DOTALL,
)
_TYPED = re.compile(r"(?:you)?> (.+)")
_SITE, _HEALTH = "127.0.0.1:8020", "127.0.0.1:9464"
_HOME, _ZONE = "/home/ada", "Europe/Berlin"
_ANY = "…"
_NOTE = "_No language model is connected"
_FORMS = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z)?|\d{8}T\d{6}Z"), "TIME"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DATE"),
    (re.compile(r"(?i:tomorrow, |today, )?[A-Z][a-z]+day,? \d+ [A-Z][a-z]+ \d{4}"), "DAY"),
    (re.compile(r"\b\d\d:\d\d(:\d\d)?\b"), "CLOCK"),
    (re.compile(r"\b[A-Z0-9]{4}(-[A-Z0-9]{4}){1,2}\b"), "CODE"),
    (re.compile(r"\btapebot_[\w.…-]+"), "TOKEN"),
    # An id may happen to have digits alone, or letters alone. A date without dashes counts as one.
    (re.compile(r"\b[0-9a-f]{8,}\b"), "ID"),
    (re.compile(r"\b[\d,.]+ (bytes|KB|MB)|\bbyte [\d,]+"), "SIZE"),
    (re.compile(r"#\d+"), "#N"),
    (re.compile(r"(?<=/memory forget )(yes|no|only) \d+"), r"\1 N"),
    (re.compile(r"enter#\S+"), "enter#KEY"),
    (re.compile(r"\b\d+(\.\d+)? (s|ms|seconds)\b"), "DURATION"),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a page, or an order; its lines are without the indentation."""

    kind: str
    lines: list[str]
    start: int
    end: int
    indent: str

    @property
    def commands(self) -> list[str]:
        if self.kind in ("sh", "python"):
            return [one for one in self.lines if one and not one.startswith("#")]
        return [what for what, _ in _steps(self)]


def blocks(page: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(page):
        kind = found["order"] or found["kind"]
        group = "hidden" if found["order"] else "text"
        indent = found["indent"] or ""
        lines = [line.removeprefix(indent).rstrip() for line in found[group].splitlines()]
        if found["order"]:
            lines = [line.strip() for line in lines]
        yield Block(kind, lines, found.start(group), found.end(group), indent)


def _steps(block: Block) -> list[tuple[str, list[str]]]:
    r"""Return what is done, each with the lines shown for it; what goes on behind ``\`` is one command."""
    steps: list[tuple[str, list[str]]] = []
    for line in block.lines:
        typed = _TYPED.fullmatch(line) if block.kind in ("chat", "before") else None
        if typed is not None:
            steps.append((f"> {typed[1]}" if block.kind == "before" else typed[1], []))
        elif line.startswith("$ ") and block.kind in ("console", "before"):
            steps.append((line if block.kind == "before" else line[2:], []))
        elif steps and steps[-1][0].endswith("\\"):
            steps[-1] = (f"{steps[-1][0][:-1].rstrip()} {line.strip()}", [])
        elif steps:
            steps[-1][1].append(line)
        else:
            assert not line, f"nothing is done for {line!r}"
    return steps


def same(shown: list[str], said: list[str]) -> bool:
    """Say whether a page shows what was said, up to what differs from run to run."""
    pattern = ""
    for line in filter(None, map(_form, shown)):
        if line.strip() in (_ANY, "..."):
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(map(re.escape, line.split(_ANY))) + r"\n"
    text = "".join(f"{line}\n" for line in filter(None, map(_form, said)))
    return re.fullmatch(pattern, text) is not None


def _form(line: str) -> str:
    for differs, form in _FORMS:
        line = differs.sub(form, line)
    return line.rstrip()


def _noon() -> str:
    """Return a time zone in which it is about noon: no page is played over midnight."""
    return f"Etc/GMT{datetime.now(UTC).hour - 12:+d}"


@dataclass
class Player:
    """A person with a scratch home, which stands for ``/home/ada``."""

    folder: Path
    life: AsyncExitStack
    environment: dict[str, str] = field(default_factory=dict)
    answers: list[str] = field(default_factory=list)
    _served: AsyncExitStack | None = None
    _place: str = _SITE
    _health: str = _HEALTH

    def __post_init__(self) -> None:
        """Make the person's folder, with ``tapebot`` on the path."""
        (self.folder / "bin").mkdir(parents=True)
        for name, module in (("tapebot", "-m bot "), ("python", "")):
            script = self.folder / "bin" / name
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module}"$@"\n')
            script.chmod(0o755)
        (self.folder / "ada").mkdir()
        self.environment = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "ROOT": str(ROOT),
            "TAPEBOT_USER_NAME": "Ada",
            "TAPEBOT_TIMEZONE": _noon(),
            "TAPEBOT_WEB_LISTEN": "off",
        }

    @property
    def home(self) -> Path:
        return self.folder / "ada"

    async def play(self, block: Block) -> list[tuple[str, list[str], list[str]]]:
        """Do what a block says; return what was done, what the page shows for it, and what came out."""
        if block.kind == "chat":
            steps = _steps(block)
            said = await self.chat([typed for typed, _ in steps])
            return [("\n".join(t for t, _ in steps), [one for _, s in steps for one in s], said)]
        if block.kind == "console":
            return [(what, shown, await self.run(what)) for what, shown in _steps(block)]
        if block.kind == "before":
            steps = [what for what, _ in _steps(block)]
            for is_typed, some in groupby(steps, lambda what: what.startswith("> ")):
                if is_typed:
                    await self.chat([what[2:] for what in some])
                    continue
                for what in some:
                    await self.run(what[2:])
        elif block.kind == "sh":
            await self.run("\n".join(block.lines))
        elif block.kind == "python":
            await self._shell(shlex.join(["python", "-c", "\n".join(block.lines)]))
        elif block.kind == "model":
            await self._model([line for line in block.lines if line])
        elif block.kind == "serve":
            await self._serve()
        elif block.kind == "stop":
            await self._stop()
        return []

    async def chat(self, typed: list[str]) -> list[str]:
        """Type lines at the terminal; return what is shown then, without the note about the responder."""
        assert self._served is None, "the terminal is not there while the program serves"
        given = "".join(f"{line}\n" for line in typed).replace(_HOME, str(self.home))
        done = await self._program([], given)
        assert done.returncode == 0, done.stderr
        lines = self._shown(done.stdout)
        return [line for line in lines if not line.startswith(_NOTE)]

    async def run(self, command: str) -> list[str]:
        command = command.replace(_SITE, self._place).replace(_HOME, str(self.home))
        words = shlex.split(command, comments=True) if "\n" not in command else []
        if words[:1] == ["tapebot"] and not set(command) & set("|>&;$<*~"):
            done = await self._program(words[1:])
            return self._shown(done.stdout + done.stderr)
        return self._shown(await self._shell(command))

    async def _program(self, arguments: list[str], given: str = "") -> Any:
        more = {"environment": self.environment, "cwd": self.home, "given": given}
        return await anyio.to_thread.run_sync(
            lambda: run_program(["-m", "bot", *arguments], timeout=SECONDS, **more)
        )

    async def _shell(self, command: str) -> str:
        """Run it in a shell that goes on from the one before, as far as its variables go."""
        command = command.replace(_SITE, self._place).replace(_HEALTH, self._health)
        left = self.folder / "environment"
        script = f"set -ea\n{command}\n{{ env -0 > {shlex.quote(str(left))}; }} 2>/dev/null"
        how = {"env": self.environment, "cwd": self.home, "stderr": subprocess.STDOUT}
        done = await anyio.run_process(["sh", "-c", script], check=False, **how)
        said = done.stdout.decode()
        assert done.returncode == 0, f"{command}: {said}"
        kept = (one.partition("=") for one in left.read_text().split("\0") if one)
        self.environment = {name: value for name, _, value in kept if name not in ("PWD", "_")}
        return said

    def _shown(self, text: str) -> list[str]:
        text = text.replace(str(self.home), _HOME).replace(self._place, _SITE)
        text = text.replace(self.environment["TAPEBOT_TIMEZONE"], _ZONE)
        return [line.rstrip() for line in text.replace("\r", "").splitlines()]

    async def _model(self, answers: list[str]) -> None:
        self.answers[:] = answers
        if "TAPEBOT_MODEL" in self.environment:
            return

        def step(_: dict[str, Any]) -> Reply:
            answer = self.answers.pop(0)
            name, _, arguments = answer.partition(" ")
            return Reply(calls=(Call(name, arguments),)) if arguments[:1] == "{" else Reply(answer)

        server = await self.life.enter_async_context(ScriptedOpenAI(step))
        self.environment |= {
            "TAPEBOT_MODEL": "openai/scripted",
            "TAPEBOT_MODEL_API_BASE": server.base_url,
            "TAPEBOT_MODEL_API_KEY": "sk-x",
            "TAPEBOT_JUDGE_MODEL": "none",
        }

    async def _serve(self) -> None:
        async with AsyncExitStack() as served:
            self._place = f"127.0.0.1:{served.enter_context(kept_port())}"
            self._health = f"127.0.0.1:{served.enter_context(kept_port())}"
            self.environment["TAPEBOT_WEB_LISTEN"] = self._place
            self.environment["TAPEBOT_OPERATE_LISTEN"] = self._health
            program = await open_program(["-m", "bot"], environment=self.environment, cwd=self.home)
            served.push_async_callback(_ended, program)
            assert program.stdout is not None
            said = b""
            with anyio.fail_after(SECONDS):
                while b"Web: " not in said:  # it is told once the site answers
                    said += await program.stdout.receive()
            self._served = served.pop_all()
            self.life.push_async_callback(self._stop)

    async def _stop(self) -> None:
        if self._served is not None:
            await self._served.aclose()
            self._served = None
            self.environment["TAPEBOT_WEB_LISTEN"] = "off"
            del self.environment["TAPEBOT_OPERATE_LISTEN"]


async def _ended(program: Forked) -> None:
    program.terminate()
    with anyio.fail_after(SECONDS):
        await program.aclose()


async def rewritten(one: Player, block: Block) -> str:
    """Play a block; return its text, with what came out where the page shows something else."""
    if block.kind not in ("chat", "console"):
        await one.play(block)
        return "\n".join([*block.lines, ""])
    lines: list[str] = []
    sign = "$ " if block.kind == "console" else block.lines[0].partition(" ")[0] + " "
    for what, shown in _steps(block):
        said = await (one.run(what) if block.kind == "console" else one.chat([what]))
        blank = [""] if block.kind == "chat" and lines else []
        kept = shown if same(shown, said) else _trimmed(said)
        lines += [*blank, sign + what, *_trimmed(kept)]
    return "".join(f"{block.indent}{line}".rstrip() + "\n" for line in lines)


def _trimmed(lines: list[str]) -> list[str]:
    while lines and not lines[-1]:
        lines = lines[:-1]
    while lines and not lines[0]:
        lines = lines[1:]
    return lines
