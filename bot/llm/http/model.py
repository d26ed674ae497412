"""Chat models called over HTTP, behind the model port.

Rule 1: nothing is loaded until the first call, or ``warm``.
Rule 2: what a server refuses (a form of forcing a call, an optional field) is left out, and that is
remembered.
Rule 3: an answer that is not complete, or cannot be understood, is a transient error.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from bot.core.errors import (
    ModelAuthError,
    ModelRejected,
    ModelUnavailable,
    TransientModelError,
)
from bot.core.installation import this_installation
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason, reason_of
from bot.llm.base import (
    CapabilityProfile,
    Model,
    ModelReply,
    ModelRequest,
    OnText,
    Usage,
    estimate_tokens,
)
from bot.llm.bounds import MOST_TEXT
from bot.llm.http.answer import CallForm, ModelAnswer, ServerError, Wire
from bot.llm.http.anthropic_messages import REPLY_TOOL, AnthropicMessages
from bot.llm.http.chat_completions import REASONING_FIELDS, ChatCompletions
from bot.llm.http.connection import Connection, TooLarge, read_events, read_json, read_lines
from bot.llm.http.ollama_chat import OllamaChat
from bot.llm.http.providers import ModelServer, WireProtocol
from bot.llm.instrumented import instrumented
from bot.llm.openai_format import FORCINGS, flatten_content
from bot.llm.price_table import call_cost, read_price_entry
from bot.llm.profiles import profile_for
from bot.llm.provider_errors import UNREADABLE_REPLY, model_error
from bot.llm.streamed_reply import finish_reason

if TYPE_CHECKING:
    import aiohttp

logger = logging.getLogger(__name__)

_WIRES: dict[WireProtocol, Wire] = {
    "chat-completions": ChatCompletions(),
    "anthropic-messages": AnthropicMessages(),
    "ollama-chat": OllamaChat(),
}
_OPTIONAL = ("temperature", "stream_options", "max_tokens", "usage")
"""Fields of a request that may be left out, besides the client's own parameters."""

_MISSING_REASONING = LazyPattern(
    r"missing .{0,3}reasoning_content|reasoning_content.{0,80}passed back", re.IGNORECASE
)
"""DeepSeek's words, if calls come back without the reasoning that led to them."""


class HTTPModel(Model):
    """A chat model on a server whose protocol is spoken here.

    Args:
        name: ``provider/model``, as litellm spells it.
        server: Where it is called.
        timeout: Seconds of silence from the server before a call fails.
        profile: The capabilities; corrected from the price table once that is read.
        temperature: Sampling temperature; None leaves it to the provider.
        max_tokens: The most tokens of a reply; None leaves it to the provider.
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
    ) -> None:
        self._name = name
        self._server = server
        self._profile = profile
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._wire = _WIRES[server.protocol]
        self._connection = Connection(timeout)
        self._entry: dict[str, Any] | None = None
        self._looked_up = False
        self._forcing = 0
        self._refused: frozenset[str] = frozenset()
        self._needs_reasoning = False

    @property
    def name(self) -> str:
        """The model's name, with its provider."""
        return self._name

    @property
    def profile(self) -> CapabilityProfile:
        """The model's capabilities."""
        return self._profile

    async def warm(self) -> None:
        """Load the HTTP library and the model's price now.

        Raises:
            ModelUnavailable: aiohttp is not installed.
        """
        if self._looked_up:
            return
        self._entry = await anyio.to_thread.run_sync(_load, self._name, abandon_on_cancel=True)
        if self._profile == profile_for(self._name):
            self._profile = profile_for(self._name, self._entry)
        self._looked_up = True

    @instrumented
    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call; see ``Model.complete``."""
        await self.warm()
        if self._server.missing_key:
            raise ModelAuthError(
                Reason("model_no_key", model=self._name, variable=self._server.missing_key)
            )
        while True:
            form = CallForm(
                self._server,
                stream=on_text is not None,
                tool_choice=FORCINGS[self._forcing],
                refused=self._refused,
                needs_reasoning=self._needs_reasoning,
                temperature=self._temperature,
                max_tokens=self._max_tokens,
                context_tokens=self._profile.context_tokens,
            )
            sent = request
            if not self._profile.vision:
                # As a fallback, it may get requests made for a model with vision.
                sent = _without_images(request)
            body = self._wire.body(sent, form)
            with self._map_errors():
                try:
                    answer = await self._call(body, on_text)
                except ServerError as exc:
                    if self._adapt(exc, request, body):
                        continue
                    raise
            return self._reply(request, body, answer)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._connection.aclose()

    async def _call(self, body: dict[str, Any], on_text: OnText | None) -> ModelAnswer:
        url = f"{self._server.address}{self._wire.path}"
        answer = ModelAnswer()
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
        if answer.reply.is_full:
            logger.warning("%s: the answer was cut at %d characters", self._name, MOST_TEXT)
            answer.reply.set_finish_reason("length")
        elif not answer.ended and not _all_calls_are_whole(answer):
            raise TransientModelError(self._said(Reason("model_answer_cut_off")))
        return answer

    async def _stream(
        self, response: aiohttp.ClientResponse, answer: ModelAnswer, on_text: OnText
    ) -> None:
        events = read_events(response) if self._wire.events == "sse" else _objects(response)
        async with aclosing(events):
            async for event in events:
                if event is None:
                    answer.ended = True
                elif self._wire.read_event(answer, event):
                    on_text(answer.reply.text)
                if answer.reply.is_full:
                    break

    def _adapt(self, exc: ServerError, request: ModelRequest, body: dict[str, Any]) -> bool:
        """Leave out what the server refuses; return whether the call is to be made again."""
        if exc.status_code not in {400, 422}:
            return False
        text = str(exc)
        forced = request.tool_choice not in {"auto", "none"} or request.json_schema is not None
        if forced and "tool_choice" in text and self._forcing < len(FORCINGS) - 1:
            self._forcing += 1
            return True
        if _MISSING_REASONING.search(text) and not self._needs_reasoning:
            self._needs_reasoning = True
            return True
        sent = {*body, *(name for message in body["messages"] for name in message)}
        for field in (*_OPTIONAL, *REASONING_FIELDS, *request.parameters):
            if field in sent and re.search(rf"\b{re.escape(field)}\b", text):
                self._refused |= {field}
                return True
        return False

    def _said(self, error: str) -> Reason:
        return Reason("model_said", model=self._name, error=error)

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
        except TimeoutError as exc:
            raise TransientModelError(self._said(Reason("model_timeout"))) from exc
        except (AttributeError, LookupError, TypeError, ValueError, RecursionError) as exc:
            logger.warning("%s: an answer that cannot be parsed", self._name, exc_info=exc)
            raise TransientModelError(self._said(UNREADABLE_REPLY)) from exc

    def _reply(
        self, request: ModelRequest, body: dict[str, Any], answer: ModelAnswer
    ) -> ModelReply:
        content, calls = answer.reply.text, answer.reply.calls()
        if request.json_schema is not None and calls and calls[0].name == REPLY_TOOL:
            content, calls = calls[0].arguments, ()
            ending = "stop" if answer.reply.finish_reason == "tool_calls" else None
        else:
            ending = None
        reason = ending or finish_reason(answer.reply.finish_reason, calls)
        return ModelReply(
            content=content,
            tool_calls=calls,
            finish_reason=reason,
            usage=self._usage(body, answer),
            model=self._name,
            cache_reported=answer.usage is not None and answer.usage.cached is not None,
            usage_reported=answer.usage is not None,
            reasoning=answer.carried() if calls else {},
        )

    def _usage(self, body: dict[str, Any], answer: ModelAnswer) -> Usage:
        """Return the usage that the server reports, or an estimate if it reports none."""
        told = answer.usage
        if told is None:
            messages = flatten_content(body["messages"])
            prompt = json.dumps(
                [body.get("system"), messages, body.get("tools")], ensure_ascii=False
            )
            read, written = estimate_tokens(prompt), estimate_tokens(answer.reply.text)
            return Usage(prompt_tokens=read, completion_tokens=written, cost=None, calls=1)
        cost = told.cost
        if cost is None:
            cost = call_cost(
                self._entry,
                at=datetime.now(UTC),
                prompt=told.prompt,
                completion=told.completion,
                cached=told.cached or 0,
                stored=told.stored,
            )
        return Usage(told.prompt, told.cached or 0, told.completion, cost, 1)


def _without_images(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=flatten_content(request.messages))


async def _objects(response: aiohttp.ClientResponse) -> AsyncGenerator[Any]:
    async with aclosing(read_lines(response)) as lines:
        async for line in lines:
            if line.strip():
                yield json.loads(line)


def _all_calls_are_whole(answer: ModelAnswer) -> bool:
    """Return whether a stream that ended without a reason called tools, and with whole arguments."""
    calls = answer.reply.calls()
    try:
        return bool(calls) and all(isinstance(json.loads(call.arguments), dict) for call in calls)
    except ValueError:
        return False


def _load(name: str) -> dict[str, Any] | None:
    try:
        import aiohttp  # noqa: F401 - the first call would import it on the event loop
    except ImportError as exc:
        missing = Reason("model_library_missing", command=this_installation().add_command("models"))
        raise ModelUnavailable(missing) from exc
    return read_price_entry(name)
