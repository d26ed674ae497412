"""Chat models of any provider that litellm supports, behind the model port.

litellm is imported on the first call, in a thread; ``warm`` imports it ahead of time. Its
exceptions do not leave this module.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from copy import deepcopy
from dataclasses import replace
from types import ModuleType
from typing import Any

from bot.llm.base import CapabilityProfile, ChatMessage, ModelRequest, OnText
from bot.llm.http.answer import ModelAnswer
from bot.llm.http.chat_completions import ChatCompletions
from bot.llm.http.providers import ModelServer
from bot.llm.litellm_library import NO_KEY, LiteLLMHandle, map_litellm_errors
from bot.llm.openai_format import newest_marked
from bot.llm.prices import price_entry
from bot.llm.provider_model import ProviderModel


class LiteLLMModel(ProviderModel):
    """A chat model called through litellm, which knows address and key where they are None."""

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
        super().__init__(
            name,
            ModelServer(name, api_base or "", "chat-completions", api_key),
            ChatCompletions(),
            profile=profile,
            temperature=temperature,
            max_tokens=max_tokens,
        )
        self._timeout = timeout
        self._library = LiteLLMHandle()
        self._litellm: ModuleType | None = None
        self._unlisted: list[str] = []
        self._key = api_key

    async def warm(self) -> None:
        """Import litellm now.

        Raises:
            ModelUnavailable: litellm is not installed.
        """
        if self._litellm is None:
            litellm = await self._library.load()
            self._look_up(litellm)
            self._litellm = litellm

    async def aclose(self) -> None:
        """Close litellm's connections, if nothing else uses them."""
        self._litellm = None
        await self._library.aclose()

    def _look_up(self, litellm: ModuleType) -> None:
        """Read from litellm's tables: price, capabilities, parameters, and missing API keys."""
        self._correct_profile(price_entry(litellm.model_cost, self._name))
        # litellm silently drops parameters its table lacks; a provider that refuses them says so.
        listed = litellm.get_supported_openai_params(model=self._name) or []
        self._unlisted = [one for one in ("tools", "tool_choice") if one not in listed]
        if self._server.key is None:
            keys = litellm.validate_environment(model=self._name)["missing_keys"]
            if missing := [key for key in keys if key.endswith("_API_KEY")]:
                self._key = NO_KEY
                if not self._server.address:
                    self._server = replace(self._server, missing_key=" or ".join(missing))

    def _marked(self, messages: list[ChatMessage], request: ModelRequest) -> list[ChatMessage]:
        if "claude" not in self._name:
            return messages
        return [*messages[:-1], newest_marked(messages[-1], request)]

    def _map_errors(self) -> AbstractContextManager[None]:
        return map_litellm_errors(self._name, self._server.key)

    async def _send(
        self, answer: ModelAnswer, body: dict[str, Any], on_text: OnText | None
    ) -> None:
        assert self._litellm is not None
        response = await self._litellm.acompletion(**self._arguments(body))
        if on_text is None:
            self._wire.read_whole(answer, response.model_dump())
            return
        try:
            async for chunk in response:
                if self._wire.read_event(answer, chunk.model_dump()):
                    on_text(answer.reply.text)
                if answer.reply.is_full:
                    break
            # litellm reports "stop" even if the stream was cut short; these fields do not.
            if not (response.received_finish_reason or response.intermittent_finish_reason):
                answer.ended = answer.reply.is_full
        finally:
            await response.aclose()

    def _arguments(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return litellm's arguments: copies, since it changes them for some providers."""
        arguments: dict[str, Any] = {
            **body,
            "messages": [dict(message) for message in body["messages"]],
            "timeout": self._timeout,
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
            # Otherwise a call with tools imports the mcp package, which litellm does not require.
            "_skip_mcp_handler": True,
            "api_base": self._server.address or None,
            "api_key": self._key,
        }
        if "tools" in body:
            arguments["tools"] = deepcopy(body["tools"])
            if self._unlisted:
                arguments["allowed_openai_params"] = self._unlisted
        if "claude" in self._name:
            # Anthropic caches only what is marked: the system prompt, and all but the last message.
            arguments["cache_control_injection_points"] = [
                {"location": "message", "role": "system"},
                {"location": "message", "index": -2},
            ]
        if self._name.startswith("ollama"):
            # Ollama silently truncates prompts to its window, which is small unless requested.
            arguments["num_ctx"] = self._profile.context_tokens
        return arguments
