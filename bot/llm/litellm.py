"""Chat models of any provider that litellm supports, behind the model port.

litellm is imported on the first call, in a thread; ``warm`` imports it ahead of time. Its
exceptions do not leave this module.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from types import ModuleType
from typing import Any

from bot.core.errors import ModelAuthError, ModelError, TransientModelError
from bot.core.i18n import _
from bot.core.reasons import Reason
from bot.llm.base import (
    CapabilityProfile,
    ChatMessage,
    Model,
    ModelReply,
    ModelRequest,
    OnText,
    Usage,
    estimate_tokens,
)
from bot.llm.bounds import MOST_TEXT
from bot.llm.instrumented import instrumented
from bot.llm.litellm_library import LiteLLMHandle, map_litellm_errors
from bot.llm.openai_format import (
    FORCINGS,
    flatten_content,
    least_of,
    newest_marked,
    response_format,
    tool_choice,
    tools_json,
)
from bot.llm.price_table import price_entry
from bot.llm.profiles import profile_for
from bot.llm.provider_errors import UNREADABLE_REPLY
from bot.llm.streamed_reply import StreamedReply, finish_reason, tool_calls

logger = logging.getLogger(__name__)

_NO_KEY = "no-key"


class LiteLLMModel(Model):
    """A chat model called through litellm.

    Args:
        name: litellm's name, ``provider/model``.
        api_base: The provider's base URL; None for litellm's default.
        api_key: The API key; None takes it from the provider's environment variable.
        timeout: Seconds of silence from the provider before a call fails.
        profile: The capabilities; corrected from litellm's price list once that is loaded.
        temperature: Sampling temperature; None leaves it to the provider.
        max_tokens: The most tokens of a reply; None leaves it to the provider.
    """

    def __init__(
        self,
        name: str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        timeout: float,
        profile: CapabilityProfile,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self._name = name
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._api_base = api_base
        self._api_key = api_key
        self._timeout = timeout
        self._profile = profile
        self._library = LiteLLMHandle()
        self._looked_up = False
        self._priced = False
        self._missing_keys: tuple[str, ...] = ()
        self._forcing = 0
        self._unlisted: list[str] = []

    @property
    def name(self) -> str:
        """The model's name in litellm."""
        return self._name

    @property
    def profile(self) -> CapabilityProfile:
        """The model's capabilities."""
        return self._profile

    async def warm(self) -> None:
        """Import litellm now.

        Raises:
            ModelUnavailable: litellm is not installed.
        """
        await self._ready()

    @instrumented
    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call; see ``Model.complete``."""
        litellm = await self._ready()
        if self._missing_keys and not self._api_base:
            names = " or ".join(self._missing_keys)
            raise ModelAuthError(_("{name}: no API key; set {names}", name=self._name, names=names))
        while True:
            forced = request.tool_choice not in {"auto", "none"}
            arguments = self._arguments(request)
            try:
                with map_litellm_errors(self._name, self._api_key), self._map_malformed_reply():
                    return await self._call(litellm, arguments, on_text)
            except ModelError as exc:
                last = self._forcing == len(FORCINGS) - 1
                if not forced or last or not _refuses_forcing(exc.__cause__):
                    raise
                self._forcing += 1

    @contextmanager
    def _map_malformed_reply(self) -> Iterator[None]:
        """Map errors from replies of an unexpected shape to ``TransientModelError``."""
        try:
            yield
        except (AttributeError, LookupError, TypeError, ValueError) as exc:
            logger.warning("%s: an answer that cannot be parsed", self._name, exc_info=exc)
            raise TransientModelError(
                Reason("model_said", model=self._name, error=UNREADABLE_REPLY)
            ) from exc

    async def aclose(self) -> None:
        """Close litellm's connections, if nothing else uses them."""
        await self._library.aclose()

    async def _ready(self) -> ModuleType:
        litellm = await self._library.load()
        if not self._looked_up:
            self._looked_up = True
            self._look_up(litellm)
        return litellm

    def _look_up(self, litellm: ModuleType) -> None:
        """Read from litellm's tables: price, capabilities, parameters, and missing API keys."""
        info = price_entry(litellm.model_cost, self._name)
        self._priced = info is not None
        if self._profile == profile_for(self._name):
            self._profile = profile_for(self._name, info)
        # litellm silently drops parameters its table lacks; a provider that refuses them says so.
        listed = litellm.get_supported_openai_params(model=self._name) or []
        self._unlisted = [one for one in ("tools", "tool_choice") if one not in listed]
        if self._api_key is None:
            missing = litellm.validate_environment(model=self._name)["missing_keys"]
            self._missing_keys = tuple(key for key in missing if key.endswith("_API_KEY"))

    def _arguments(self, request: ModelRequest) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "model": self._name,
            # Copies, here and of the tools: litellm changes them for some providers, and they are used again.
            "messages": self._messages(request),
            "timeout": self._timeout,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
            # Otherwise a call with tools imports the mcp package, which litellm does not require.
            "_skip_mcp_handler": True,
            "api_base": self._api_base,
            "api_key": self._api_key or (_NO_KEY if self._missing_keys else None),
        }
        if request.tools:
            arguments["tools"] = deepcopy(tools_json(request.tools))
            arguments["tool_choice"] = tool_choice(request.tool_choice, FORCINGS[self._forcing])
            if self._unlisted:
                arguments["allowed_openai_params"] = self._unlisted
        if request.json_schema is not None:
            arguments["response_format"] = response_format(request.json_schema)
        if (most := least_of(request.max_tokens, self._max_tokens)) is not None:
            arguments["max_tokens"] = most
        if self._temperature is not None:
            arguments["temperature"] = self._temperature
        arguments.update(request.parameters)
        if "claude" in self._name:
            # Anthropic caches only what is marked: the system prompt, all but the last message, and of
            # that what the next request repeats.
            arguments["cache_control_injection_points"] = [
                {"location": "message", "role": "system"},
                {"location": "message", "index": -2},
            ]
            *before, last = arguments["messages"]
            arguments["messages"] = [*before, newest_marked(last, request)]
        if self._name.startswith("ollama"):
            # Ollama silently truncates prompts to its window, which is small unless requested.
            arguments["num_ctx"] = self._profile.context_tokens
        return arguments

    def _messages(self, request: ModelRequest) -> list[ChatMessage]:
        if self._profile.vision:
            return [dict(message) for message in request.messages]
        # As a fallback, it may get requests made for a model with vision.
        return [dict(message) for message in flatten_content(request.messages)]

    async def _call(
        self, litellm: ModuleType, arguments: dict[str, Any], on_text: OnText | None
    ) -> ModelReply:
        if on_text is not None:
            return await self._stream(litellm, arguments, on_text)
        response = await litellm.acompletion(**arguments)
        if not response.choices:
            raise TransientModelError(
                _("{name}: the provider sent an empty answer", name=self._name)
            )
        choice = response.choices[0]
        if len(choice.message.content or "") > MOST_TEXT:
            logger.warning("%s: the answer was cut at %d characters", self._name, MOST_TEXT)
            choice.message.content = choice.message.content[:MOST_TEXT]
            choice.finish_reason = "length"
        calls = tool_calls(
            (call.id, call.function.name or "", call.function.arguments)
            for call in choice.message.tool_calls or ()
        )
        return ModelReply(
            content=choice.message.content or "",
            tool_calls=calls,
            finish_reason=finish_reason(choice.finish_reason, calls),
            usage=self._usage(litellm, arguments, choice.message.content, response),
            model=self._name,
            cache_reported=_tells_cache(response),
            usage_reported=_tells_usage(response),
        )

    async def _stream(
        self, litellm: ModuleType, arguments: dict[str, Any], on_text: OnText
    ) -> ModelReply:
        options = {"include_usage": True}
        stream = await litellm.acompletion(**arguments, stream=True, stream_options=options)
        answer, reporting = StreamedReply(), None
        try:
            async for chunk in stream:
                if getattr(chunk, "usage", None) is not None:
                    reporting = chunk
                if _add(answer, chunk):
                    on_text(answer.text)
                if answer.is_full:
                    logger.warning("%s: the answer was cut at %d characters", self._name, MOST_TEXT)
                    break
            # litellm reports "stop" even if the stream was cut short; these fields do not.
            ended = stream.received_finish_reason or stream.intermittent_finish_reason
        finally:
            await stream.aclose()
        if answer.is_full:
            answer.set_finish_reason("length")
        elif not ended:
            raise TransientModelError(_("{name}: the answer was cut off", name=self._name))
        calls = answer.calls()
        return ModelReply(
            content=answer.text,
            tool_calls=calls,
            finish_reason=finish_reason(answer.finish_reason, calls),
            usage=self._usage(litellm, arguments, answer.text, reporting),
            model=self._name,
            cache_reported=_tells_cache(reporting),
            usage_reported=_tells_usage(reporting),
        )

    def _usage(
        self, litellm: ModuleType, arguments: dict[str, Any], text: str | None, reporting: Any
    ) -> Usage:
        """Return the usage that a response reports, or an estimate if it reports none."""
        usage = getattr(reporting, "usage", None)
        if usage is None or not _tells_usage(reporting):
            messages = flatten_content(arguments["messages"])
            prompt = json.dumps([messages, arguments.get("tools")], ensure_ascii=False)
            read, written = estimate_tokens(prompt), estimate_tokens(text or "")
            return Usage(prompt_tokens=read, completion_tokens=written, cost=None, calls=1)
        details = getattr(usage, "prompt_tokens_details", None)
        cost = None
        if self._priced:
            response = litellm.ModelResponse(model=self._name, usage=usage)
            cost = litellm.completion_cost(completion_response=response, model=self._name)
        return Usage(
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=getattr(details, "cached_tokens", None) or 0,
            completion_tokens=usage.completion_tokens or 0,
            cost=cost,
            calls=1,
        )


def _tells_usage(reporting: Any) -> bool:
    """Return whether a response reports the tokens that it cost."""
    usage = getattr(reporting, "usage", None)
    return usage is not None and bool(usage.prompt_tokens)


def _tells_cache(reporting: Any) -> bool:
    """Return whether a response reports the tokens served from the provider's cache."""
    usage = getattr(reporting, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return getattr(details, "cached_tokens", None) is not None


def _add(answer: StreamedReply, chunk: Any) -> bool:
    """Add a chunk to the reply; return whether its text grew."""
    grew = False
    for choice in (chunk.choices or ())[:1]:
        grew = answer.add_text(choice.delta.content)
        for call in choice.delta.tool_calls or ():
            function = call.function
            answer.add_call(call.index, call.id, function.name, function.arguments)
        answer.set_finish_reason(choice.finish_reason)
    return grew


def _refuses_forcing(exc: BaseException | None) -> bool:
    return getattr(exc, "status_code", None) in {400, 422} and "tool_choice" in str(exc)
