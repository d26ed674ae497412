"""Interfaces between the channel of client programs and what reads their conversations.

A client program uses tapebot as its language model: it sends the whole conversation with each
request. The channel speaks its protocol; the backend finds the session that the conversation is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bot.bus.messages import Address, Button
from bot.bus.site import WebUser

if TYPE_CHECKING:
    # Loaded only if a site is served.
    from starlette.requests import HTTPConnection

API_CHANNEL = "api"
"""The name of the channel of client programs."""

MCP_CHANNEL = "mcp"
"""The name of the channel of programs that use memory: ``mcp:local:editor``."""


@dataclass(frozen=True, slots=True)
class ClientMessage:
    """A message of the conversation that a client sends.

    Attributes:
        author: Who said it.
        text: Its text; empty if it has only calls or files.
    """

    author: Literal["person", "bot"]
    text: str


@dataclass(frozen=True, slots=True)
class ClientHistory:
    """The conversation that a client sends with a request.

    Attributes:
        past: The messages before the new one, oldest first.
        new: The new message of the person; None if the request brings results of tools.
        calls: Ids of the calls whose results it brings.
        repeated: Whether the client says that it sends this request again.
    """

    past: tuple[ClientMessage, ...]
    new: ClientMessage | None
    calls: tuple[str, ...] = ()
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class ClientPlace:
    """Where a request belongs.

    Attributes:
        address: The session.
        inbound: The id for the new message: it depends only on the place on the tape.
        unknown: Messages of the client that the tape does not hold.
        asked: Id of the message on the tape that is this request, if it came before.
        answer: Id of the answer to that message; None if there is none yet.
        pairs: Whether the results that the request brings belong to calls on the tape.
    """

    address: Address
    inbound: str
    unknown: tuple[ClientMessage, ...] = ()
    asked: str | None = None
    answer: str | None = None
    pairs: bool = True


@dataclass(frozen=True, slots=True)
class ClientOutcome:
    """An answer as its client gets it.

    Attributes:
        text: The text.
        calls: Calls of the client's tools: id, name, arguments.
        error: Why there is no answer; None if there is one.
        limited: Whether a budget is the reason.
        cut_off: Whether the model reached its limit for one answer.
        prompt_tokens: Tokens read in all its model calls.
        cached_tokens: Those of them that the provider's cache served.
        completion_tokens: Tokens written.
    """

    text: str
    calls: tuple[tuple[str, str, str], ...] = ()
    error: str | None = None
    limited: bool = False
    cut_off: bool = False
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PlainRequest:
    """A request that is passed to the model as it is: no memory, and on no tape.

    Attributes:
        messages: The messages, in the OpenAI chat format.
        parameters: As in ``ClientRequest``.
    """

    messages: Sequence[dict[str, Any]]
    parameters: dict[str, Any] = field(default_factory=dict)


def client_topic(client: str, number: str) -> str:
    """Return the last part of the key of a client's session.

    Args:
        client: As in ``WebUser``.
        number: The session's number.
    """
    # No name of a token has a tilde, so two never share their sessions.
    return f"{'~'.join(client.split())}-{number}" if client else number


def text_with_buttons(text: str, buttons: Sequence[Button]) -> str:
    """Return an answer's text with its buttons as commands to send, for clients without buttons."""
    lines = [f"- {button.label}: `{button.command}`" for button in buttons]
    return "\n\n".join(filter(None, [text, "\n".join(lines)]))


class ClientBackend(Protocol):
    """What the channel of client programs needs of the program."""

    async def user(self, connection: HTTPConnection) -> WebUser:
        """Return who calls, by the token; count the request.

        Raises:
            HttpError: The token is not valid, or there are too many requests.
        """
        ...

    def models(self, user: WebUser) -> list[str]:
        """Return the names of the models that a client can choose; the first is the default."""
        ...

    async def locate(self, user: WebUser, history: ClientHistory) -> ClientPlace:
        """Return where a request belongs: in the session that has its past, or in a fork of it.

        A fork is made if the past goes on otherwise there; a new session has no tape yet.

        Raises:
            TapeError: The storage failed.
        """
        ...

    async def past(self, session: str, inbound: str) -> tuple[ClientMessage, ...] | None:
        """Return a session's messages up to the answer to one; None without it."""
        ...

    def mark_delivered(self, session: str, answer: str) -> None:
        """Remember that an answer reached its client, if no receipt can say so any more."""
        ...

    async def outcome(self, session: str, answer: str, text: str | None = None) -> ClientOutcome:
        """Return an answer with its calls and its usage.

        Args:
            session: The session's key.
            answer: The answer's id.
            text: The text that was sent; None takes the tape's.
        """
        ...

    async def is_on_tape(self, session: str, inbound: str) -> bool:
        """Return whether a session's tape holds a message."""
        ...

    async def answer_to(self, session: str, inbound: str) -> str | None:
        """Return the id of the answer to a message; None if the tape has none yet."""
        ...

    async def complete(
        self, user: WebUser, request: PlainRequest, on_text: Callable[[str], None] | None = None
    ) -> ClientOutcome:
        """Pass a request to the model, within the limits on spending."""
        ...
