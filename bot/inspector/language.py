"""The language of a request, decided once: a person's choice, else the browser's, else the installation's.

Programs read English: requests with a token, and those to ``/v1``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Formatter
from typing import Protocol

from babel import Locale
from babel.messages.extract import extract
from markupsafe import Markup, escape
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from bot.core.i18n import _, current_language, ngettext, use_language

logger = logging.getLogger(__name__)

_SCRIPTS = Path(__file__).parent / "static"
_SAMPLES = (*range(21), 100, 1_000_000)
"""Numbers among which are all categories of plurals that whole numbers have in any language."""


class LanguageChoices(Protocol):
    """The languages that people chose for themselves, in a chat or on the site."""

    async def language_of(self, identity: str) -> str | None:
        """Return the language that a person chose; None if they chose none.

        Raises:
            TapebotError: It cannot be read at the moment.
        """
        ...

    async def choose(self, identity: str, language: str | None) -> None:
        """Store the language that a person chose; None for that of their client.

        Raises:
            TapebotError: It cannot be stored at the moment.
        """
        ...


class LanguageMiddleware:
    """Decide the language of each request or WebSocket, and set it for all that answers it."""

    def __init__(self, app: ASGIApp, decide: Callable[[HTTPConnection], Awaitable[str]]) -> None:
        self._app = app
        self._decide = decide

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request or WebSocket."""
        if scope["type"] not in ("http", "websocket") or scope["path"].startswith("/static/"):
            await self._app(scope, receive, send)
            return
        language = await self._decide(HTTPConnection(scope))
        # Errors that leave the application are answered outside of it.
        scope.setdefault("state", {})["language"] = language
        with use_language(language):
            await self._app(scope, receive, send)


def html_(message: str, /, **values: object) -> Markup:
    """Return a message with elements in it: all else, of the message and its values, is text."""
    named = {name: f"{{{name}}}" for name in values}
    return _filled(_(message, **named), values)


def nhtml_(singular: str, plural: str, n: int, /, **values: object) -> Markup:
    """Return the form of a message with elements in it that fits a number; see ``html_``."""
    named = {name: f"{{{name}}}" for name in values}
    return _filled(ngettext(singular, plural, n, **named), values)


def _filled(message: str, values: dict[str, object]) -> Markup:
    return escape(message).format_map(values)


# The messages of scripts.


def script_messages(language: str) -> dict[str, str | dict[str, str]]:
    """Return the messages that the site's scripts use, in a language, by the English ones.

    A message that has a plural is an object with a form for each category of CLDR.
    """
    with use_language(language):
        return {
            given[0] if isinstance(given, tuple) else given: _told(given)
            for given in _script_messages()
        }


def script_address() -> str:
    """Return the address of the messages of scripts in the current language; empty for English."""
    language = current_language()
    return "" if language == "en" else f"/messages/{language}?v={_script_version(language)}"


@cache
def _script_version(language: str) -> str:
    return sha256(repr(script_messages(language)).encode()).hexdigest()[:12]


def _told(given: str | tuple[str, str]) -> str | dict[str, str]:
    if isinstance(given, str):
        return _(given, **_own_names(given))

    rule = Locale.parse(current_language()).plural_form
    named = _own_names(given[0], given[1])
    return {rule(number): ngettext(*given, number, **named) for number in reversed(_SAMPLES)}


def _own_names(*messages: str) -> dict[str, str]:
    """Return values that leave the names in a message as they are."""
    names = {name for one in messages for _text, name, *_rest in Formatter().parse(one) if name}
    return {name: f"{{{name}}}" for name in names}


@cache
def _script_messages() -> tuple[str | tuple[str, str], ...]:
    return tuple(dict.fromkeys(_extracted()))


def _extracted() -> Iterator[str | tuple[str, str]]:

    keywords = {"_": None, "N_": None, "ngettext": (1, 2)}
    for path in sorted(_SCRIPTS.glob("*.js")):
        with path.open("rb") as script:
            for _line, given, _comments, _context in extract("javascript", script, keywords):
                yield given if isinstance(given, str) else (given[0], given[1])
