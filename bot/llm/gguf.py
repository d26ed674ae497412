"""Run a GGUF file in this process, with the llama.cpp server of xllamacpp.

Everything slow runs in a worker thread. llama.cpp's server always listens on loopback; a random API
key keeps other programs on the machine from using it.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from bot.core.errors import (
    ContextOverflow,
    ModelError,
    ModelRejected,
    ModelUnavailable,
    TransientModelError,
)
from bot.core.installation import this_installation
from bot.core.reasons import Reason
from bot.llm.base import CapabilityProfile, Model, ModelReply, ModelRequest, OnText, Usage
from bot.llm.http.answer import ModelAnswer
from bot.llm.http.chat_completions import ChatCompletions
from bot.llm.instrumented import instrumented
from bot.llm.openai_format import (
    flatten_content,
    least_of,
    own_messages,
    response_format,
    tools_json,
)
from bot.llm.profiles import profile_for
from bot.llm.provider_errors import clean_error_text
from bot.llm.streamed_reply import finish_reason

_MAGIC = b"GGUF"
_WIRE = ChatCompletions()
_LARGEST_WINDOW = 8_192
_QUIET = -1
_PROPS_TIMEOUT = 10.0
_THREADS = 256
"""The most calls at once, each in a thread; ``CallSlots`` allows no more."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    server: Any
    profile: CapabilityProfile


class GGUFModel(Model):
    """A model in a GGUF file.

    Args:
        path: The file; loaded on the first call or by ``warm``.
        temperature: Sampling temperature; None leaves it to llama.cpp.
        max_tokens: The most tokens of a reply; None sets no limit.
    """

    def __init__(
        self, path: str, *, temperature: float | None = None, max_tokens: int | None = None
    ) -> None:
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._path = Path(path).expanduser()
        self._profile = profile_for(self.name)
        self._loaded: _Loaded | None = None
        self._loading = anyio.Lock()
        # Calls that wait for the model must take no threads from files and tapes.
        self._threads = anyio.CapacityLimiter(_THREADS)

    @property
    def name(self) -> str:
        """``gguf:`` and the file's name."""
        return f"gguf:{self._path.name}"

    @property
    def profile(self) -> CapabilityProfile:
        """The model's capabilities; window and tools are known once it is loaded."""
        return self._profile

    async def warm(self) -> None:
        """Load the file now.

        Raises:
            ModelUnavailable: xllamacpp or the file is missing, or the file is not a model.
        """
        await self._ready()

    @instrumented
    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call; see ``Model.complete``.

        A cancelled call ends at once; its thread stops at the next token.
        """
        loaded = await self._ready()
        run = _Run(self.name, loaded.server, on_text)
        body = _body(request, tools=loaded.profile.tools)
        if (most := least_of(request.max_tokens, self._max_tokens)) is not None:
            body["max_tokens"] = most
        if self._temperature is not None:
            body["temperature"] = self._temperature
        try:
            return await anyio.to_thread.run_sync(
                run, body, abandon_on_cancel=True, limiter=self._threads
            )
        finally:
            run.stopped.set()

    async def aclose(self) -> None:
        """Unload the model and stop its server."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            # Dropping the last reference joins the server's threads, which takes a moment.
            loadeds = [loaded]
            del loaded
            await anyio.to_thread.run_sync(loadeds.clear)

    async def _ready(self) -> _Loaded:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await anyio.to_thread.run_sync(
                    _load, self._path, self._profile, abandon_on_cancel=True
                )
                self._profile = self._loaded.profile
            return self._loaded


class _Run:
    """Run one call in a worker thread.

    Attributes:
        stopped: Set when the caller no longer waits for the call.
    """

    def __init__(self, name: str, server: Any, on_text: OnText | None) -> None:
        self.stopped = threading.Event()
        self._name = name
        self._server = server
        self._on_text = on_text
        self._answer = ModelAnswer()
        self._error: dict[str, Any] | None = None
        self._raised: list[BaseException] = []

    def __call__(self, body: dict[str, Any]) -> ModelReply:
        try:
            returned = self._server.handle_chat_completions(body, self._receive)
        except (ValueError, RuntimeError) as exc:
            raise ModelRejected(f"{self._name}: {clean_error_text(str(exc))}") from exc
        if self._raised:
            raise self._raised[0]
        error = self._error or (returned or {}).get("error")
        if error:
            raise _model_error(self._name, error)
        if not self._answer.ended:
            raise TransientModelError(Reason("gguf_cut_off", name=self._name))
        reply, told = self._answer.reply, self._answer.usage
        content, calls = reply.content_and_calls()
        return ModelReply(
            content=content,
            tool_calls=calls,
            finish_reason=finish_reason(reply.finish_reason, calls),
            usage=Usage(told.prompt, told.cached or 0, told.completion, calls=1)
            if told is not None
            else Usage(calls=1),
            model=self._name,
            cache_reported=told is not None and told.cached is not None,
        )

    def _receive(self, chunk: dict[str, Any]) -> bool:
        """Take one chunk; return True to stop. llama.cpp swallows exceptions raised here."""
        if self.stopped.is_set():
            return True
        try:
            self._take(chunk)
        except BaseException as exc:
            self._raised.append(exc)
            raise
        return False

    def _take(self, chunk: dict[str, Any]) -> None:
        self._error = chunk.get("error") or self._error
        grew = not self._error and _WIRE.read_event(self._answer, chunk)
        if grew and self._on_text is not None:
            anyio.from_thread.run_sync(self._hand_over, self._on_text, self._answer.reply.text)

    def _hand_over(self, on_text: Callable[[str], None], text: str) -> None:
        if not self.stopped.is_set():
            on_text(text)


def _body(request: ModelRequest, *, tools: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "messages": flatten_content(own_messages(request.messages, "gguf")),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.json_schema is not None:
        body["response_format"] = response_format(request.json_schema)
    if request.tools and tools:
        body["tools"] = tools_json(request.tools)
        # llama.cpp has no named tool choice: offer only the forced tool instead.
        forced = [t for t in body["tools"] if t["function"]["name"] == request.tool_choice]
        body["tools"] = forced or body["tools"]
        body["tool_choice"] = "required" if forced else request.tool_choice
    return body


def _model_error(name: str, error: dict[str, Any]) -> ModelError:
    text = f"{name}: {clean_error_text(str(error.get('message', error)))}"
    if error.get("type") == "exceed_context_size_error":
        return ContextOverflow(text)
    if error.get("code", 500) >= 500:
        return TransientModelError(text)
    return ModelRejected(text)


def _load(path: Path, profile: CapabilityProfile) -> _Loaded:
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except OSError as exc:
        raise ModelUnavailable(
            Reason("gguf_unreadable", path=str(path), why=str(exc.strerror))
        ) from exc
    if magic != _MAGIC:
        raise ModelUnavailable(Reason("gguf_not_one", path=str(path)))
    try:
        import xllamacpp
    except ImportError as exc:
        command = this_installation().add_command("local")
        raise ModelUnavailable(Reason("gguf_library_missing", command=command)) from exc
    params = xllamacpp.CommonParams()
    params.model.path = os.fspath(path)
    params.n_ctx = _LARGEST_WINDOW
    params.n_parallel = 1
    params.use_jinja = True
    params.warmup = False
    params.verbosity = _QUIET
    params.ui = False
    params.endpoint_slots = False
    key = secrets.token_urlsafe(32)
    params.api_keys = [key]
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError) as exc:
        raise ModelUnavailable(
            Reason("gguf_not_loaded", path=str(path), why=clean_error_text(str(exc)))
        ) from exc
    return _Loaded(server, _found(profile, _properties(server.listening_address, key)))


def _properties(address: str, key: str) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the server's own address on loopback
        f"{address}/props",
        headers={"Authorization": f"Bearer {key}"},  # for programs
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_PROPS_TIMEOUT) as response:
        properties: dict[str, Any] = json.load(response)
    return properties


def _found(profile: CapabilityProfile, properties: dict[str, Any]) -> CapabilityProfile:
    """Return the profile with the window and the tool support that the server reports."""
    abilities = properties.get("chat_template_caps") or {}
    tools = bool(abilities.get("supports_tools") and abilities.get("supports_tool_calls"))
    window = (properties.get("default_generation_settings") or {}).get("n_ctx")
    return replace(
        profile,
        tools=tools,
        context_tokens=window or profile.context_tokens,
    )
