"""What people say and do on both platforms, by chance, with an account of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from platform_stage import Place, Stage, now

from testkit.discord.records import DiscordUpload

Kind = Literal["text", "file", "command", "slash", "press", "edit"]

KEEP = "/memory"
"""What the button "Keep it" below the answer to ``/memory clear`` sends."""

_NOTES = b"Milk, bread, and a light bulb."
_RECENT = 3
_BUTTON = "t:"


@dataclass(frozen=True)
class Said:
    """Something that a person did.

    Attributes:
        id: As tapebot's tape names it.
        number: The platform's id of the message, of the interaction, or of what was edited.
        at: When, by the clock of the servers' books.
        token: What its answer repeats; None for what the model does not answer.
        heard: Whether tapebot had a connection then.
    """

    kind: Kind
    place: Place
    id: str
    number: int
    at: float
    token: str | None
    heard: bool

    @property
    def interaction(self) -> bool:
        """Whether the platform tells of it once and never again."""
        return self.place.platform == "discord" and self.kind in ("slash", "press")

    @property
    def is_owed(self) -> bool:
        """Whether a turn ends for it at last, however often tapebot is killed."""
        return not self.interaction and self.kind != "edit"


class Talk:
    """People who talk; chance decides everything, and ``said`` holds all that was done, in order."""

    def __init__(
        self, stage: Stage, chance: random.Random, connected: Callable[[Place], bool]
    ) -> None:
        self.said: list[Said] = []
        self._stage = stage
        self._chance = chance
        self._connected = connected
        self._pressed: set[tuple[int, int]] = set()
        self._open: list[Said] = []

    def greet(self) -> None:
        """Let everybody say something everywhere, and give every private memory something to clear."""
        for place in self._stage.places:
            if place.private:
                number = self._say(place, "remember: I like tea.")
                kind = "command" if place.platform == "telegram" else "slash"
                self._note(kind, place, str(number), number)
            self._text(place)

    def burst(self, platform: str | None = None) -> None:
        """Let people do a few things at once, in a place or more."""
        places = [one for one in self._stage.places if platform in {None, one.platform}]
        for place in self._chance.sample(places, self._chance.choice([1, 2, 2, 3])):
            for _ in range(self._chance.choice([1, 1, 2, 3])):
                self._do_something(place)

    def command(self) -> None:
        place = self._chance.choice(
            [one for one in self._stage.places if one.platform == "discord"]
        )
        self._command(place)

    def answered(self, said: Said) -> bool:
        if said.token is not None:
            return any(said.token in text for text in self._stage.texts(said.place).values())
        if said.kind == "command":
            return any(one.reply_to == said.number for one in self._stage.on_telegram(said.place))
        # An interaction may be lost, and nothing shows that an edit or a press was taken in.
        return True

    def unanswered(self) -> list[Said]:
        self._open = [one for one in self._open if not self.answered(one)]
        return self._open

    # What they do.

    def _do_something(self, place: Place) -> None:
        drawn = self._chance.random()
        if drawn < 0.4 and self._press(place):
            return
        if drawn < 0.1:
            self._file(place)
        elif drawn < 0.25:
            self._command(place)
        elif drawn >= 0.35 or not self._edit(place):
            self._text(place)

    def _text(self, place: Place) -> None:
        token = self._token()
        text = f"Tell me about {token}, please."
        number = self._say(place, text)
        self._note("text", place, str(number), number, token)

    def _file(self, place: Place) -> None:
        token = self._token()
        text = self._addressed(place, f"Look at this, {token}.")
        who = self._chance.choice(place.people)
        if place.platform == "discord":
            upload = DiscordUpload("list.txt", _NOTES, "text/plain")
            number = self._stage.discord.say(place.chat, who, text, attachments=[upload])
        elif self._chance.random() < 0.5:
            number = self._stage.telegram.photo(place.chat, who, caption=text, topic=place.topic)
        else:
            number = self._stage.telegram.document(
                place.chat, who, "list.txt", "text/plain", _NOTES, caption=text, topic=place.topic
            )
        self._note("file", place, str(number), number, token)

    def _command(self, place: Place) -> None:
        clear = place.private and self._chance.random() < 0.4
        if place.platform == "telegram":
            text = "/memory clear" if clear else "/status"
            text = text if place.private else f"{text}@{self._stage.telegram.me.username}"
            number = self._say(place, text)
            self._note("command", place, str(number), number)
        elif self._stage.discord.records.commands.get(0) and self._connected(place):
            name, options = ("memory", {"what": "clear"}) if clear else ("status", {})
            who = self._chance.choice(place.people)
            number = self._stage.discord.slash(place.chat, who, name, options)
            self._note("slash", place, f"i{number}", number)
        else:
            self._text(place)

    def _press(self, place: Place) -> bool:
        """Press "Keep it" where it stands and was not pressed yet."""
        if place.platform == "telegram":
            return self._press_on_telegram(place)
        for message in self._stage.on_discord(place):
            key = (place.chat, message.id)
            if key in self._pressed or KEEP not in _offered(message.components):
                continue
            self._pressed.add(key)
            number = self._stage.discord.press(message.id, _BUTTON + KEEP, place.people[0])
            self._note("press", place, f"cb{number}", number)
            return True
        return False

    def _press_on_telegram(self, place: Place) -> bool:
        for shown in self._stage.on_telegram(place):
            key = (place.chat, shown.id)
            offered = {one.get("callback_data") for row in shown.buttons for one in row}
            if key in self._pressed or KEEP not in offered:
                continue
            self._pressed.add(key)
            query = self._stage.telegram.press(shown, KEEP, user=place.people[0])
            self._note("press", place, f"cb{query}", int(query))
            return True
        return False

    def _edit(self, place: Place) -> bool:
        """Change something that was said a moment ago; its token stays."""
        recent = [one for one in self.said if one.place is place and one.kind == "text"]
        recent = [one for one in recent if one.token][-_RECENT:]
        if not recent:
            return False
        said = self._chance.choice(recent)
        words = f"Tell me about {said.token}, in {len(self.said)} words."
        text = self._addressed(place, words)
        if place.platform == "discord":
            self._stage.discord.edit(said.number, text)
            number = 0
        else:
            self._stage.telegram.edit(said.number, text, chat=place.chat)
            number = self._stage.telegram.records.updates[-1].id
        self._note("edit", place, f"{said.number}.e{number}", said.number)
        return True

    def _say(self, place: Place, text: str) -> int:
        text = self._addressed(place, text)
        who = self._chance.choice(place.people)
        if place.platform == "discord":
            return self._stage.discord.say(place.chat, who, text)
        return self._stage.telegram.say(place.chat, who, text, topic=place.topic)

    def _addressed(self, place: Place, text: str) -> str:
        if place.private or text.startswith("/"):
            return text
        if place.platform == "discord":
            return f"<@{self._stage.discord.bot_id}> {text}"
        return f"@{self._stage.telegram.me.username} {text}"

    def _token(self) -> str:
        return f"K{self._chance.randrange(16**6):06X}"

    def _note(
        self, kind: Kind, place: Place, inbound: str, number: int, token: str | None = None
    ) -> None:
        one = Said(kind, place, inbound, number, now(), token, self._connected(place))
        self.said.append(one)
        self._open.append(one)


def _offered(components: object) -> set[str]:
    if isinstance(components, dict):
        own = {str(components.get("custom_id", "")).removeprefix(_BUTTON)}
        return own | _offered(components.get("components", ()))
    if isinstance(components, list | tuple):
        return {each for one in components for each in _offered(one)}
    return set()
