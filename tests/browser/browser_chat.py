"""What a person does in the chat, and sees there."""

from __future__ import annotations

from playwright.async_api import Locator, Page, expect

BOX = "#chat-text"


async def say(page: Page, text: str) -> None:
    await page.locator(BOX).fill(text)
    await page.locator(BOX).press("Enter")


def answers(page: Page) -> Locator:
    return page.locator(".chat-row.bot:not(.growing)")


def said(page: Page) -> Locator:
    return page.locator(".chat-row.person")


async def shown(page: Page) -> list[str]:
    texts = await page.locator(".chat-row .chat-body").all_inner_texts()
    return [text.strip() for text in texts]


async def expect_shown(page: Page, words: list[str]) -> None:
    await expect(page.locator(".chat-row .chat-body")).to_have_text(words, use_inner_text=True)


async def until_quiet(page: Page) -> None:
    """Wait until nothing is under way: the bot does nothing, and all that was said is accepted."""
    await expect(page.locator("#chat-stop")).to_be_hidden()
    await expect(page.locator(".chat-sending")).to_have_count(0)
    await expect(page.locator("#chat-state")).to_be_empty()
