"""Serves chats in which people work on problems of their own, until it is killed; a nursery.

In, one JSON object a line: ``{"folder", "chats", "seed", "rounds", "until", "known", "kill"}``: people go
on where they were (``known``: what the platform has word of) up to the bursts ``until``, and the
process kills itself as ``kill`` says, ``{"changes" | "mark" | "model" | "answer" | "seconds", "part",
"start"}``, at the latest when all that was said is answered. Out: ``ack``, ``answer``, ``died`` with the
moment, ``dead``.

The platform sends again what it has no word of, and now and then also what it has. Each prompt is in
``prompts.jsonl`` before the model is asked; with ``"last"`` each chat's state is in ``state-….json``. What
the program writes to its standard error is in ``errors.txt``.
"""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import sys
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_CHANGES = ("write", "fsync", "fdatasync", "rename", "replace", "unlink")
_FIRST_FILE = 3
ERRORS = "errors.txt"
_LONGEST = 100
"""Seconds that a life may take; beyond that something hangs."""
_write = os.write


def emit(**event: Any) -> None:
    """Say something; a line that is in the pipe has been heard."""
    rest = json.dumps(event).encode() + b"\n"
    while rest:
        rest = rest[_write(1, rest) :]


def die(moment: str) -> None:
    """Say so, and end as by the signal that cannot be caught."""
    emit(died=moment)
    os.kill(os.getpid(), signal.SIGKILL)


class Fault:
    """A kill at a moment that was planned."""

    def __init__(self) -> None:
        self._kind, self._left, self._mark, self._part = "", 0, b"", 0.0

    def arm(self, kill: dict[str, Any]) -> None:
        """Die as planned, counted from now.

        Args:
            kill: ``changes`` counts system calls that change files, ``mark`` writes that hold a text
                (``times``); of a write so much is done (``part``). ``model`` and ``answer`` count what the
                program says; ``seconds`` are measured by another thread.
        """
        self._part = kill.get("part", 0.0)
        self._mark = kill.get("mark", "").encode()
        if "seconds" in kill:
            timer = threading.Timer(kill["seconds"], die, ["at any time"])
            timer.daemon = True
            timer.start()
            return
        self._kind = next(one for one in ("mark", "changes", "model", "answer") if one in kill)
        self._left = kill["times"] if self._mark else kill[self._kind]

    def met(self, kind: str) -> bool:
        """Count a moment; say whether it is the one."""
        if kind != self._kind or not self._left:
            return False
        self._left -= 1
        return not self._left

    def install(self) -> None:
        """Stand before the operating system; must come before tapebot is imported."""
        for name in _CHANGES:
            setattr(os, name, self._guarded(name, getattr(os, name)))

    def _guarded(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            if not (type(args[0]) is int and args[0] < _FIRST_FILE):
                is_write = call is _write
                data = bytes(args[1]) if is_write else b""
                marked = bool(self._mark) and self._mark in data
                if self.met("changes") or (marked and self.met("mark")):
                    if is_write:
                        call(args[0], data[: int(len(data) * self._part)])
                    how = (
                        {0.0: "before", 1.0: "after"}.get(self._part, "in")
                        if is_write
                        else "before"
                    )
                    die(f"{how} {name}{f' of {self._mark.decode()}' if marked else ''}")
            return call(*args, **kwargs)

        return guarded


FAULT = Fault()
FAULT.install()

import anyio  # noqa: E402 (after the fault)
from problems_model import Scripted  # noqa: E402
from problems_talk import Message, Talk, needed  # noqa: E402

from bot.agent.commands.builtin import builtin_commands  # noqa: E402
from bot.agent.commands.registry import (  # noqa: E402
    Command,
    CommandContext,
    CommandRegistry,
    CommandReply,
)
from bot.bus import Address, Answer, DeliveryReport, Inbound, Sender  # noqa: E402
from bot.runtime.app import open_app  # noqa: E402
from bot.runtime.sessions.supervisor import Supervisor  # noqa: E402
from bot.runtime.settings import load_settings  # noqa: E402

STATE = "/state"


class Pipe:
    """The channel ``pipe``, and the people who talk there.

    Args:
        port: The channel's end of the bus.
        order: As it came in.
    """

    name = "pipe"

    def __init__(self, port: Any, order: dict[str, Any]) -> None:
        self._port = port
        self._order = order
        self._known = order["known"]
        self._again = random.Random(str(order["kill"]))
        self._answered: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)

    async def show(self) -> None:
        """Show answers as they come."""
        while True:
            outbound = await self._port.receive()
            if isinstance(outbound, Answer):
                if FAULT.met("answer"):
                    die("before an answer")
                emit(answer=outbound.reply_to, turn=outbound.id, text=outbound.text[:200])
                self._answered[str(outbound.reply_to)].set()
                await self._port.report(DeliveryReport(outbound.session, outbound.id))

    async def talk(self, talk: Talk, first: int, until: int) -> None:
        """Say what is to be said, from one burst up to another; each is answered before the next."""
        for burst in talk.bursts[first:until]:
            for message in burst:
                if message.id not in self._known["acked"] or self._again.random() < 0.2:
                    await self.say(talk, message)
            for one in needed(burst):
                if one not in self._known["answered"]:
                    await self._answered[one].wait()

    async def say(self, talk: Talk, message: Message) -> None:
        """Send a message, perhaps again."""
        inbound = Inbound(
            Address(self.name, talk.chat),
            message.id,
            Sender(f"of-{talk.chat}", "Ada"),
            message.text,
            datetime.now(UTC),
            role="owner",
        )
        await self._port.publish(inbound)
        emit(ack=message.id)

    async def ask_state(self, talk: Talk) -> None:
        """Have a chat's state written."""
        await self.say(talk, Message(f"{talk.chat}.state", STATE, ""))
        await self._answered[f"{talk.chat}.state"].wait()


async def _state(_: str, context: CommandContext) -> CommandReply:
    """Write what the running program believes."""
    memory, fold = context.memory, context.fold
    bus, home = memory.bus, memory.home
    known = home.compartments.patterns
    told = {
        "own": fold.facts.state(),
        "home": [home.name, home.fold.state()],
        "workspace": memory.workspace.fold.state(),
        "problems": [
            [one.problem_id, one.name, one.state] for one in await bus.problems.list_by_state()
        ],
        "window": [fold.window.problem, [one.id for one in fold.window.conversation()]],
        "bounds": [fold.window.max_messages, fold.window.max_tokens],
        "chains": {one: [e.id for e in await bus.get_evidence_chain(one)] for one in known},
        "versions": {
            key: await bus.shared.list_versions(key) for key in home.compartments.versions
        },
    }
    Path(f"state-{context.tape.name.partition(':')[2]}.json").write_text(json.dumps(told))
    return CommandReply("written")


async def live(order: dict[str, Any]) -> None:
    """Serve, let people talk, and die."""
    talks = [Talk(number, order["seed"], order["rounds"]) for number in range(order["chats"])]
    known = order["known"]
    prompts = os.open("prompts.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def log(prompt: str) -> None:
        _write(prompts, prompt.encode() + b"\n")
        if FAULT.met("model"):
            die("as the model is asked")

    if order["kill"].get("start"):
        FAULT.arm(order["kill"])
    async with open_app(load_settings()) as app, anyio.create_task_group() as tasks:
        commands = CommandRegistry(
            [*builtin_commands().visible_commands(), Command("state", "", (), _state)]
        )
        agent = replace(app.services.agent, model=Scripted(log))
        services = replace(app.services, agent=agent, commands=commands)
        tasks.start_soon(Supervisor(services).run)
        tasks.start_soon(app.store.run)
        pipe = Pipe(app.bus.channel(Pipe.name), order)
        tasks.start_soon(pipe.show)
        if not order["kill"].get("start"):
            # First what was owed is answered, or one turn would be cut off again and again.
            async with anyio.create_task_group() as people:
                for talk, at, begun in zip(talks, known["at"], known["begun"], strict=True):
                    people.start_soon(pipe.talk, talk, at, at + begun)
            await app.bus.drain()
            if order["kill"]:
                FAULT.arm(order["kill"])
        async with anyio.create_task_group() as people:
            for talk, at, begun, until in zip(
                talks, known["at"], known["begun"], order["until"], strict=True
            ):
                first = at if order["kill"].get("start") else at + begun
                people.start_soon(pipe.talk, talk, first, until)
        if order["last"]:
            await app.bus.drain()
            async with anyio.create_task_group() as people:
                for talk in talks:
                    people.start_soon(pipe.ask_state, talk)
            await app.bus.drain()
        die("when all was answered")


def main() -> None:
    """Let one child after the other live and die."""
    gc.collect()
    # What is shared with the children stays shared: their collector does not touch it.
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if not child:
            signal.alarm(_LONGEST)
            os.chdir(order["folder"])
            os.dup2(os.open(ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
            try:
                os.environ |= order["settings"]
                anyio.run(live, order)
            finally:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
        _, status = os.waitpid(child, 0)
        emit(dead=os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL)


if __name__ == "__main__":
    main()
