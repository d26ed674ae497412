"""What a person does in the chat, and sees there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from playwright.async_api import Locator, Page, WebSocketRoute, expect

BOX = "#chat-text"


@dataclass  # Playwright keeps its own beside methods that it calls: no slots.
class Line:
    """What the bot tells a page over its socket, held up for as long as a test wants it.

    Attributes:
        is_held: Nothing comes through.
        held: What waits, each as a call that lets it through.
    """

    is_held: bool = False
    held: list[Callable[[], None]] = field(default_factory=list)

    async def between(self, page: Page) -> None:
        """Stand between the page's next sockets and the bot."""
        await page.route_web_socket(re.compile("/chat/socket"), self._over)

    def release(self) -> None:
        """Let through what was held, and all that comes."""
        self.is_held = False
        for one in self.held:
            one()
        self.held.clear()

    def _over(self, route: WebSocketRoute) -> None:
        bot = route.connect_to_server()
        bot.on_message(lambda frame: self._came(partial(route.send, frame)))
        # An end is told in words before, which may be held.
        bot.on_close(lambda _code, _reason: None)

    def _came(self, through: Callable[[], None]) -> None:
        if self.is_held:
            self.held.append(through)
        else:
            through()


async def say(page: Page, text: str) -> None:
    """Write a message, and send it with Enter."""
    await page.locator(BOX).fill(text)
    await page.locator(BOX).press("Enter")


def answers(page: Page) -> Locator:
    """The bot's whole answers."""
    return page.locator(".chat-row.bot:not(.growing)")


def said(page: Page) -> Locator:
    """The person's messages."""
    return page.locator(".chat-row.person")


async def shown(page: Page) -> list[str]:
    """Return what the rows say, in their order."""
    texts = await page.locator(".chat-row .chat-body").all_inner_texts()
    return [text.strip() for text in texts]


async def expect_shown(page: Page, words: list[str]) -> None:
    """Wait until the rows say this, in this order."""
    await expect(page.locator(".chat-row .chat-body")).to_have_text(words, use_inner_text=True)


async def until_quiet(page: Page) -> None:
    """Wait until nothing is under way: the bot does nothing, and all that was said is accepted."""
    await expect(page.locator("#chat-stop")).to_be_hidden()
    await expect(page.locator(".chat-sending")).to_have_count(0)
    await expect(page.locator("#chat-state")).to_be_empty()
