"""People who talk to a fleet at an even pace, some of them several times at once."""

from __future__ import annotations

import random

import anyio
from fleet_ledger import Said
from fleet_processes import SECONDS, Fleet
from platform_stage import now


class Traffic:
    def __init__(
        self,
        fleet: Fleet,
        chance: random.Random,
        *,
        rate: float = 30.0,
        at_once: int = 60,
        resent: float = 0.05,
    ) -> None:
        self.scene = ""
        self.talking = False
        self.sent_again = 0
        self._fleet = fleet
        self._world = fleet.world
        self._chance = chance
        self._rate = rate
        self._at_once = at_once
        self._resent = resent
        self._chats = [*fleet.world.chats]
        self._tokens = chance.sample(range(0x1000000), 100_000)

    async def talk(self, messages: int) -> None:
        left, due, self.talking = messages, now(), True
        while left:
            chat = self._chance.choice(self._chats)
            for _ in range(min(left, self._chance.choice([1, 1, 1, 1, 2, 3]))):
                await self._fleet.until(self._has_room, "too much is not answered", 2 * SECONDS)
                self.say(chat)
                left -= 1
                due = max(due + 1 / self._rate, now() - 1)
            await anyio.sleep(max(0.0, due - now()))
        self.talking = False
        self._world.note()

    async def begin(self) -> None:
        """Wait until the fleet has come up: until somebody who said something was answered."""
        self.scene = "beginning"
        self.say()
        await self.settled()

    def say(self, chat: int = 0) -> Said:
        """Let somebody say something whose answer repeats its token; in any chat, where none is named."""
        chat, token, at = chat or self._chats[0], f"K{self._tokens.pop():06X}", now()
        # Noted before the platform tells anybody, who might be quick.
        number = self._world.telegram.say(chat, chat, f"Tell me about {token}, please.")
        said = Said(chat, str(number), token, at, self.scene)
        self._world.ledger.note(said)
        if self._chance.random() < self._resent:
            self._send_again()
        return said

    async def settled(self, within: float = 2 * SECONDS) -> None:
        ledger = self._world.ledger
        try:
            await self._fleet.until(lambda: not ledger.open, "answers are missing", within)
        except TimeoutError as error:
            error.add_note(f"{len(ledger.open)} unanswered: {[*ledger.open.values()][:20]}")
            raise

    def _has_room(self) -> bool:
        return len(self._world.ledger.open) < self._at_once

    def _send_again(self) -> None:
        """Let Telegram send an update that was confirmed once more."""
        updates = self._world.telegram.records.updates
        known = [one for one in updates[-40:] if one.confirmed_at is not None]
        if known:
            self._world.telegram.redeliver(self._chance.choice(known))
            self.sent_again += 1
