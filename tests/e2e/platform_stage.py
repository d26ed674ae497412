"""The world around a tapebot that is killed: both platforms, a model, and the people."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio

from testkit.discord.records import DiscordMessage, DiscordRecords
from testkit.discord.server import DiscordServer
from testkit.openai_server import Reply, ScriptedOpenAI
from testkit.telegram.records import BotMessage
from testkit.telegram.server import TelegramServer

TOKEN = re.compile(r"K[0-9A-F]{6}")
"""What each message of a person's has alone, and the end of its answer repeats."""

_FILLER = "this is what I would say to that, with some words so that it is worth to be streamed. "
_KEY = "sk-of-the-test"


@dataclass(frozen=True)
class Place:
    name: str
    platform: Literal["telegram", "discord"]
    chat: int
    session: str
    people: tuple[int, ...]
    topic: int | None = None
    private: bool = True


class Model:
    """Repeats the tokens of all that is not answered in a request; now at once, now slowly."""

    def __init__(self, chance: random.Random) -> None:
        self.slow = 0.0
        self.pauses: tuple[float, float] | None = None
        self.asked = 0
        self.on_asked: Callable[[], None] = lambda: None
        self._chance = chance

    def __call__(self, request: dict[str, Any]) -> Reply:
        self.asked += 1
        self.on_asked()
        tokens = unanswered(request["messages"])
        numbers = ", ".join(token[1:] for token in tokens)
        text = f"About {numbers}: {_FILLER * 3}{' '.join(tokens)}"
        gate = anyio.Event()
        asyncio.get_running_loop().call_later(self._pause(), gate.set)
        return Reply(text, piece=len(text) // 3, gate=gate)

    def _pause(self) -> float:
        if self._chance.random() < self.slow:
            return self._chance.uniform(1.3, 1.8)
        if self.pauses is not None:
            return self._chance.uniform(*self.pauses)
        return self._chance.choice([0.0, 0.02, 0.1, 0.3])


def unanswered(messages: list[dict[str, Any]]) -> list[str]:
    """Return the tokens that users said and the assistant did not; an edit says one once more."""
    found: dict[str, list[str]] = {"user": [], "assistant": []}
    for message in messages:
        tokens = TOKEN.findall(_text(message.get("content")))
        found.setdefault(message["role"], []).extend(tokens)
    return [one for one in dict.fromkeys(found["user"]) if one not in found["assistant"]]


def is_half(text: str) -> bool:
    """Whether a text is the beginning of one of the model's answers."""
    return text.startswith("About") and not TOKEN.search(text)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", "")) for part in content)
    return str(content or "")


class _ToldBooks(DiscordRecords):
    told: Callable[[], None] = staticmethod(lambda: None)

    def touch(self) -> None:
        super().touch()
        self.told()


class Watched:
    """Something whose books are looked at when anything happens."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[], None]] = []
        self._changed = anyio.Event()

    def note(self) -> None:
        for listener in self.listeners:
            listener()
        self._changed.set()
        self._changed = anyio.Event()

    async def until(self, claim: Callable[[], Any], within: float, what: str) -> None:
        with anyio.move_on_after(within):
            while not claim():
                await self._changed.wait()
            return
        raise TimeoutError(f"not within {within:g} s: {what}")


@dataclass
class Stage(Watched):
    """Everything but tapebot; ``listeners`` are told of every fact, before the server answers for it."""

    telegram: TelegramServer
    discord: DiscordServer
    model: Model
    address: str
    places: list[Place] = field(default_factory=list)
    owners: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__init__()

    def settings(self, home: Path) -> dict[str, str]:
        settings = {
            "home": home,
            "web_listen": "off",
            "telegram_token": self.telegram.token,
            "telegram_api_base": self.telegram.url,
            "discord_token": self.discord.token,
            "discord_api_base": self.discord.api_url,
            "discord_gateway_url": self.discord.gateway_url,
            "owners": ",".join(self.owners),
            "allow": ",".join(self.allowed),
            "model": "openai/scripted",
            "model_api_base": self.address,
            "model_api_key": _KEY,
            "context_tokens": 1_000_000,
            "memory_window": 100_000,
        }
        return {f"TAPEBOT_{name.upper()}": str(value) for name, value in settings.items()}

    def polls(self) -> int:
        return self.telegram.world.bot_by_id(self.telegram.me.id).poll

    def on_telegram(self, place: Place) -> list[BotMessage]:
        return self.telegram.records.messages(place.chat, topic=place.topic)

    def on_discord(self, place: Place) -> list[DiscordMessage]:
        """Return the bot's standing messages of a place, signs of thinking apart."""
        return self.discord.answers(place.chat)

    def texts(self, place: Place) -> dict[str, str]:
        """Return what the bot's standing messages of a place say, by their ids."""
        if place.platform == "telegram":
            return {str(one.id): one.text for one in self.on_telegram(place)}
        return {str(one.id): one.content for one in self.on_discord(place)}

    def people_arrive(self) -> None:
        self._on_telegram_arrive()
        self._on_discord_arrive()

    def _on_telegram_arrive(self) -> None:
        telegram, numbers = self.telegram, itertools.count(7)
        for name in ("Ada", "Bob", "Cleo"):
            person = telegram.user(next(numbers), name, name.lower())
            telegram.private(person)
            self.places.append(
                Place(name, "telegram", person.id, f"telegram:{person.id}", (person.id,))
            )
        people = tuple(telegram.world.users)
        group, forum = -1001000001, -1001000002
        telegram.group(group, "Team")
        telegram.group(forum, "Projects", forum=True)
        topic = telegram.topic(forum, "Plans", people[0])
        other = telegram.topic(forum, "Costs", people[0])
        self.places += [
            Place("group", "telegram", group, f"telegram:{group}", people, private=False),
            *(
                Place(
                    name, "telegram", forum, f"telegram:{forum}:{one}", people, one, private=False
                )
                for name, one in (("topic", topic), ("topic 2", other))
            ),
        ]
        self.owners += (f"telegram:{people[0]}",)
        self.allowed += (*(f"telegram:{one}" for one in people[1:]),)
        self.allowed += (f"telegram:{group}", f"telegram:{forum}")

    def _on_discord_arrive(self) -> None:
        discord = self.discord
        people = tuple(discord.user(name) for name in ("dora", "emil"))
        guild = discord.guild("Club", people)
        channel = discord.channel(guild, "general")
        thread = discord.thread(channel, "plans", user=people[0])
        for name, person in zip(("dora", "emil"), people, strict=True):
            direct = discord.direct(person)
            self.places.append(Place(name, "discord", direct, f"discord:{direct}", (person,)))
        self.places += [
            Place("channel", "discord", channel, f"discord:{channel}", people, private=False),
            Place(
                "thread", "discord", thread, f"discord:{channel}:{thread}", people, private=False
            ),
        ]
        self.owners += (f"discord:{people[0]}",)
        self.allowed += (f"discord:{people[1]}", f"discord:{guild}")


def now() -> float:
    return time.monotonic()


class _OfTheDead(logging.Filter):
    """Leaves out what a server has to say of a client that is dead."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not isinstance((record.exc_info or (None, None))[1], ConnectionError)


@asynccontextmanager
async def open_stage(chance: random.Random) -> AsyncIterator[Stage]:
    """Yield a world with people in it, its servers listening."""
    telegram, discord, model = TelegramServer(), DiscordServer(), Model(chance)
    told = _ToldBooks()
    discord.world.records = told
    provider = ScriptedOpenAI(model)
    logger, quiet = logging.getLogger("aiohttp.server"), _OfTheDead()
    logger.addFilter(quiet)
    async with telegram, discord, provider:
        stage = Stage(telegram, discord, model, provider.base_url)
        stage.people_arrive()
        woken = telegram.records.changed

        def changed() -> None:
            woken()
            stage.note()

        telegram.records.changed = changed
        told.told = stage.note
        model.on_asked = stage.note
        yield stage
    logger.removeFilter(quiet)
