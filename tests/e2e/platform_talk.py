"""What people say on both platforms, by chance, with an account of it."""

from __future__ import annotations

import random
from dataclasses import dataclass

from platform_stage import Place, Stage, now

from testkit.discord.records import DiscordUpload

_NOTES = b"Milk, bread, and a light bulb."


@dataclass(frozen=True)
class Said:
    """A person's message: where, its id, when by the clock of the servers' books, and what its answer repeats."""

    place: Place
    id: str
    at: float
    token: str


class Talk:
    """People who talk; chance decides everything, and ``said`` holds all that was said, in order."""

    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self.said: list[Said] = []
        self._stage = stage
        self._chance = chance
        self._open: list[Said] = []

    def greet(self) -> None:
        for place in self._stage.places:
            self._say(place)

    def burst(self, platform: str | None = None) -> None:
        """Let people say a few things at once, in a place or more."""
        places = [one for one in self._stage.places if platform in {None, one.platform}]
        for place in self._chance.sample(places, self._chance.choice([1, 2, 2, 3])):
            for _ in range(self._chance.choice([1, 1, 2, 3])):
                self._say(place)

    def unanswered(self) -> list[Said]:
        """Return what the platforms do not show an answer to."""
        self._open = [one for one in self._open if not self._is_answered(one)]
        return self._open

    def _is_answered(self, said: Said) -> bool:
        return any(said.token in text for text in self._stage.texts(said.place).values())

    def _say(self, place: Place) -> None:
        token = f"K{self._chance.randrange(16**6):06X}"
        text, who = f"Tell me about {token}, please.", self._chance.choice(place.people)
        with_file = self._chance.random() < 0.1
        if place.platform == "discord":
            discord = self._stage.discord
            text = text if place.private else f"<@{discord.bot_id}> {text}"
            files = [DiscordUpload("list.txt", _NOTES, "text/plain")] if with_file else []
            number = discord.say(place.chat, who, text, attachments=files)
        else:
            telegram = self._stage.telegram
            text = text if place.private else f"@{telegram.me.username} {text}"
            if with_file:
                number = telegram.document(
                    place.chat,
                    who,
                    "list.txt",
                    "text/plain",
                    _NOTES,
                    caption=text,
                    topic=place.topic,
                )
            else:
                number = telegram.say(place.chat, who, text, topic=place.topic)
        said = Said(place, str(number), now(), token)
        self.said.append(said)
        self._open.append(said)
