"""Chat models called over HTTP, behind the model port."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from bot.core.errors import ModelRejected, ModelUnavailable
from bot.core.installation import this_installation
from bot.core.reasons import Reason, reason_of
from bot.llm.base import CapabilityProfile, OnText
from bot.llm.http.answer import ModelAnswer, ServerError, Wire
from bot.llm.http.anthropic_messages import AnthropicMessages
from bot.llm.http.chat_completions import ChatCompletions
from bot.llm.http.connection import (
    Connection,
    TooLarge,
    check_page,
    read_events,
    read_json,
    read_lines,
)
from bot.llm.http.ollama_chat import OllamaChat
from bot.llm.http.providers import ModelServer, WireProtocol
from bot.llm.openai_format import FORCINGS
from bot.llm.prices import read_price_entry
from bot.llm.provider_errors import model_error
from bot.llm.provider_model import ProviderModel

if TYPE_CHECKING:
    import aiohttp

_WIRES: dict[WireProtocol, Wire] = {
    "chat-completions": ChatCompletions(),
    "anthropic-messages": AnthropicMessages(),
    "ollama-chat": OllamaChat(),
}


class HTTPModel(ProviderModel):
    """A chat model on a server whose protocol is spoken here; see ``ProviderModel``.

    A call fails after ``timeout`` seconds of silence from the server.
    """

    def __init__(
        self,
        name: str,
        server: ModelServer,
        *,
        timeout: float,
        profile: CapabilityProfile,
        temperature: float | None = None,
        max_tokens: int | None = None,
        forcing: str = FORCINGS[0],
    ) -> None:
        super().__init__(
            name,
            server,
            _WIRES[server.protocol],
            profile=profile,
            temperature=temperature,
            max_tokens=max_tokens,
            forcing=forcing,
        )
        self._connection = Connection(timeout)
        self._looked_up = False

    async def warm(self) -> None:
        """Load the HTTP library and the model's price now.

        Raises:
            ModelUnavailable: aiohttp is not installed.
        """
        if self._looked_up:
            return
        entry = await anyio.to_thread.run_sync(_load, self._name, abandon_on_cancel=True)
        self._correct_profile(entry)
        self._looked_up = True

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def _send(
        self, answer: ModelAnswer, body: dict[str, Any], on_text: OnText | None
    ) -> None:
        url = f"{self._server.address}{self._wire.path}"
        async with self._connection.post(
            url, self._wire.headers(self._server.key), body
        ) as response:
            whole = self._wire.events == "sse" and "json" in response.content_type
            if on_text is None or whole:
                # Some servers send a whole answer although a stream was asked for.
                self._wire.read_whole(answer, await read_json(response))
                if on_text is not None and answer.reply.text:
                    on_text(answer.reply.text)
            else:
                await self._stream(response, answer, on_text)

    async def _stream(
        self, response: aiohttp.ClientResponse, answer: ModelAnswer, on_text: OnText
    ) -> None:
        events = read_events(response) if self._wire.events == "sse" else _objects(response)
        event: Any = ""
        async with aclosing(events):
            async for event in events:
                if event is None:
                    answer.ended = True
                elif isinstance(event, dict) and self._wire.read_event(answer, event):
                    on_text(answer.reply.text)
                if answer.reply.is_full:
                    break
        if event == "":
            check_page(response)

    @contextmanager
    def _map_errors(self) -> Iterator[None]:
        try:
            yield
        except ServerError as exc:
            raise model_error(
                exc, name=self._name, now=datetime.now(UTC), secret=self._server.key
            ) from exc
        except TooLarge as exc:
            raise ModelRejected(self._said(reason_of(exc)), of_content=False) from exc


async def _objects(response: aiohttp.ClientResponse) -> AsyncGenerator[Any]:
    async with aclosing(read_lines(response)) as lines:
        async for line in lines:
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError:
                    check_page(response, line)
                    raise


def _load(name: str) -> dict[str, Any] | None:
    try:
        import aiohttp  # noqa: F401 - the first call would import it on the event loop
    except ImportError as exc:
        missing = Reason("model_library_missing", command=this_installation().add_command("models"))
        raise ModelUnavailable(missing) from exc
    return read_price_entry(name)
