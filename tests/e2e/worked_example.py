"""Plays pages of the docs on Telegram and Discord: does what the page says that Ada does, and puts there what she is shown.

Blocks of the page:

- ``telegram`` and ``discord``: Ada's private chat there. A line after ``>`` is what she writes; ``> [Label]``
  presses the newest button of that name, ``> (name) words`` sends a document. All other lines are
  what she is shown for it; a block that begins with such a line waits for something that she did not ask for.
- ``document NAME``: what a document of that name says.
- ``model``: from here on a model answers, which for the next message makes these calls, one a line, and
  repeats what the tools told it. Before the first such block there is no model.

What differs from run to run stands as one example of it: days and times, the code of ``/link``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from kill_checks import read_tape
from platform_program import ROOT, Program, running
from waiting import until

from bot.memory.session.state.turn_fold import DELIVERY
from testkit.discord.records import DiscordMessage
from testkit.discord.server import DiscordServer
from testkit.openai_server import Call, Reply, ScriptedOpenAI
from testkit.telegram.records import BotMessage
from testkit.telegram.server import TelegramServer

PAGES = [
    page
    for page in sorted((ROOT / "docs").rglob("*.md"))
    if re.search(r"^ *```(telegram|discord)", page.read_text(encoding="utf-8"), re.MULTILINE)
]
"""The pages with such blocks."""

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<kind>telegram|discord|document|model) ?(?P<name>\S*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
_SAYS = "> "
_WIDTH = 100
_ADA = 7
_CODE, _EXAMPLE_CODE = re.compile(r"(?<=/link )[A-Z0-9]{4}-[A-Z0-9]{4}\b"), "K7QX-M2PD"
_EXAMPLES = (
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d"), "2026-02-10 10:00"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "2026-02-10"),
)

Where = Literal["telegram", "discord"]


@dataclass
class Player:
    folder: Path
    telegram: TelegramServer
    discord: DiscordServer
    model: ScriptedOpenAI
    ada: int
    chat: int
    documents: dict[str, bytes] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    _seen: dict[tuple[Where, int], int] = field(default_factory=dict)
    _texts: dict[tuple[Where, int], str] = field(default_factory=dict)
    _code: str = ""

    @asynccontextmanager
    async def program(self, **more: str) -> AsyncIterator[Program]:
        """Run tapebot within the block, until it is on both platforms."""
        settings = {
            "TELEGRAM_TOKEN": self.telegram.token,
            "TELEGRAM_API_BASE": self.telegram.url,
            "DISCORD_TOKEN": self.discord.token,
            "DISCORD_API_BASE": self.discord.api_url,
            "DISCORD_GATEWAY_URL": self.discord.gateway_url,
            "OWNERS": f"telegram:{_ADA},discord:{self.ada}",
            "TIMEZONE": _noon(),
            **more,
        }
        named = {f"TAPEBOT_{name}": value for name, value in settings.items()}
        async with running(self.folder, **named) as program:
            await program.until_said("Telegram: connected as @tape_bot")
            await program.until_said("Discord: connected as @tapebot")
            yield program

    async def chatted(self, where: Where, lines: list[str]) -> str:
        """Let Ada do what a block says; return the block as it is shown."""
        told: list[str] = []
        if not lines[0].startswith(_SAYS):
            await until(lambda: self._anything(where), every=0.05)
            told += self._news(where)
        for line in lines:
            if line.startswith(_SAYS):
                least = await self._receipts(where) + 1
                self._do(where, line.removeprefix(_SAYS))
                await until(partial(self._answered, where, least), every=0.05)
                told += [line, *self._news(where)]
        return "\n\n".join(told)

    async def _anything(self, where: Where) -> bool:
        return any(self._seen.get((where, one.id)) is None for one in self._messages(where))

    async def _answered(self, where: Where, least: int) -> bool:
        return await self._receipts(where) >= least

    async def _receipts(self, where: Where) -> int:
        session = f"telegram:{_ADA}" if where == "telegram" else f"discord:{self.chat}"
        entries = await read_tape(self.folder / "home", session)
        return sum(one.name == DELIVERY and "delivered" in one.data for one in entries)

    def _do(self, where: Where, what: str) -> None:
        words = what.replace(_EXAMPLE_CODE, self._code)
        if what.startswith("["):
            self._press(what.strip("[]"))
        elif (sent := re.fullmatch(r"\((\S+)\) (.*)", what)) is not None:
            name, caption = sent.groups()
            data = self.documents[name]
            self.telegram.document(_ADA, _ADA, name, "text/plain", data, caption=caption)
        elif where == "telegram":
            self.telegram.say(_ADA, _ADA, words)
        else:
            self.discord.say(self.chat, self.ada, words)

    def _press(self, label: str) -> None:
        for message in reversed(self.telegram.records.messages(_ADA)):
            data = dict(_buttons(message)).get(label)
            if data is not None:
                self.telegram.press(message, data)
                return
        raise AssertionError(f"there is no button {label!r}")

    def _messages(self, where: Where) -> list[BotMessage] | list[DiscordMessage]:
        if where == "telegram":
            return self.telegram.records.messages(_ADA)
        return self.discord.answers(self.chat)

    def _news(self, where: Where) -> Iterator[str]:
        for message in self._messages(where):
            telegram = isinstance(message, BotMessage)
            number = len(message.versions if telegram else message.edits)
            if self._seen.get((where, message.id)) == number:
                continue
            self._seen[where, message.id] = number
            text = message.text if telegram else message.content
            if self._texts.get((where, message.id)) == text:
                continue  # its buttons went, no more
            self._texts[where, message.id] = text
            yield _wrapped(self._example(text))
            if labels := [f"[{label}]" for label, _ in _buttons(message)]:
                yield " ".join(labels)

    def _example(self, text: str) -> str:
        """Return a text with what differs from run to run as on the page."""
        if (code := _CODE.search(text)) is not None:
            self._code = code[0]
        text = _CODE.sub(_EXAMPLE_CODE, text)
        for differs, example in _EXAMPLES:
            text = differs.sub(example, text)
        return text


def _noon() -> str:
    """Return a time zone in which it is about noon: no example is played over midnight."""
    ahead = 12 - datetime.now(UTC).hour
    return f"Etc/GMT{-ahead:+d}"


def _buttons(message: BotMessage | DiscordMessage) -> list[tuple[str, str]]:
    if isinstance(message, BotMessage):
        return [(one["text"], one["callback_data"]) for row in message.buttons for one in row]
    rows: list[Any] = list(message.components)
    return [(one["label"], one["custom_id"]) for row in rows for one in row["components"]]


def _wrapped(text: str) -> str:
    lines = []
    for line in text.splitlines():
        more = "  " if line.startswith(("- ", "• ")) else ""
        lines += textwrap.wrap(
            line, _WIDTH, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
        ) or [""]
    return "\n".join(lines)


def _calls(script: str) -> Iterator[Call]:
    for number, line in enumerate(script.splitlines()):
        name, _, arguments = line.partition(" ")
        yield Call(name, arguments, f"call_{number}")


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Player]:
    calls: list[Call] = []

    def step(request: dict[str, Any]) -> Reply:
        if calls:
            made, calls[:] = tuple(calls), []
            return Reply(calls=made)
        told = takewhile(lambda one: one["role"] == "tool", reversed(request["messages"]))
        # What the program adds behind the newest message is no part of what a tool answered.
        answers = [str(one["content"]).partition("\n\n<records>")[0] for one in told]
        return Reply("\n\n".join(reversed(answers)))

    model = ScriptedOpenAI(step)
    async with TelegramServer() as telegram, DiscordServer() as discord, model:
        telegram.private(telegram.user(_ADA, "Ada"))
        ada = discord.user("Ada")
        chat = discord.direct(ada)
        yield Player(folder, telegram, discord, model, ada, chat, calls=calls)


async def played(page: str, folder: Path) -> str:
    made: list[str] = []
    end = 0
    async with stage(folder) as player, AsyncExitStack() as life:
        await life.enter_async_context(player.program())
        scripted = False
        for block in _BLOCK.finditer(page):
            kind, name = block["kind"], block["name"]
            text = textwrap.dedent(block["text"])
            if kind == "document":
                player.documents[name] = text.encode()
            elif kind == "model":
                player.calls[:] = _calls(text)
                if not scripted:
                    await life.aclose()
                    scripted = True
                    await life.enter_async_context(
                        player.program(
                            MODEL="openai/scripted",
                            MODEL_API_BASE=player.model.base_url,
                            MODEL_API_KEY="sk-x",
                        )
                    )
            else:
                where: Where = "telegram" if kind == "telegram" else "discord"
                shown = await player.chatted(where, text.splitlines())
                made += [
                    page[end : block.start("text")],
                    textwrap.indent(shown, block["indent"]),
                    "\n",
                ]
                end = block.end("text")
    return "".join([*made, page[end:]])
