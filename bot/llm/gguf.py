"""Run a GGUF file in this process, with the llama.cpp server of xllamacpp.

The server listens on loopback and is called as any other; a random API key keeps other programs on the
machine from using it. Loading and unloading run in a worker thread.
"""

from __future__ import annotations

import json
import os
import secrets
import urllib.request
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from bot.core.errors import ModelUnavailable
from bot.core.installation import this_installation
from bot.core.reasons import Reason
from bot.llm.base import CapabilityProfile, Model, ModelReply, ModelRequest, OnText
from bot.llm.http.model import HTTPModel
from bot.llm.http.providers import ModelServer
from bot.llm.profiles import profile_for
from bot.llm.provider_errors import clean_error_text

_MAGIC = b"GGUF"
_LARGEST_WINDOW = 8_192
_QUIET = -1
_PROPS_TIMEOUT = 10.0
_SILENCE = 86_400.0
"""Seconds for which it may read a prompt: a slow machine is no broken one."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    server: Any
    model: HTTPModel


class GGUFModel(Model):
    """A model in a GGUF file, which is loaded on the first call or by ``warm``."""

    def __init__(
        self, path: str, *, temperature: float | None = None, max_tokens: int | None = None
    ) -> None:
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._path = Path(path).expanduser()
        self._loaded: _Loaded | None = None
        self._loading = anyio.Lock()

    @property
    def name(self) -> str:
        """``gguf:`` and the file's name."""
        return f"gguf:{self._path.name}"

    @property
    def profile(self) -> CapabilityProfile:
        """The model's capabilities; window and tools are known once it is loaded."""
        return profile_for(self.name) if self._loaded is None else self._loaded.model.profile

    async def warm(self) -> None:
        """Load the file now.

        Raises:
            ModelUnavailable: xllamacpp, aiohttp or the file is missing, or the file is not a model.
        """
        await self._ready()

    async def complete(self, request: ModelRequest, on_text: OnText | None = None) -> ModelReply:
        """Run one call; see ``Model.complete``. llama.cpp stops at the next token of a cancelled one."""
        model = await self._ready()
        # llama.cpp forces any tool only: the one that is wanted is the only one then.
        wanted = [tool for tool in request.tools if tool.name == request.tool_choice]
        tools = wanted or request.tools if model.profile.tools else ()
        return await model.complete(replace(request, tools=tools), on_text)

    async def aclose(self) -> None:
        """Unload the model and stop its server."""
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded.model.aclose()
            # Dropping the last reference joins the server's threads, which takes a moment.
            loadeds = [loaded]
            del loaded
            await anyio.to_thread.run_sync(loadeds.clear)

    async def _ready(self) -> HTTPModel:
        async with self._loading:
            if self._loaded is None:
                self._loaded = await anyio.to_thread.run_sync(self._load, abandon_on_cancel=True)
            await self._loaded.model.warm()
            return self._loaded.model

    def _load(self) -> _Loaded:
        key = secrets.token_urlsafe(32)
        server = _serve(self._path, key)
        found = _properties(server.listening_address, key)
        abilities = found.get("chat_template_caps") or {}
        window = (found.get("default_generation_settings") or {}).get("n_ctx")
        profile = replace(
            self.profile,
            tools=bool(abilities.get("supports_tools") and abilities.get("supports_tool_calls")),
            context_tokens=window or self.profile.context_tokens,
        )
        model = HTTPModel(
            self.name,
            ModelServer(self.name, f"{server.listening_address}/v1", "chat-completions", key),
            timeout=_SILENCE,
            profile=profile,
            temperature=self._temperature,
            max_tokens=self._max_tokens,
            forcing="required",
        )
        return _Loaded(server, model)


def _serve(path: Path, key: str) -> Any:
    """Return a running server of a file."""
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
    params.api_keys = [key]
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError) as exc:
        raise ModelUnavailable(
            Reason("gguf_not_loaded", path=str(path), why=clean_error_text(str(exc)))
        ) from exc


def _properties(address: str, key: str) -> dict[str, Any]:
    request = urllib.request.Request(  # noqa: S310 - the server's own address on loopback
        f"{address}/props",
        headers={"Authorization": f"Bearer {key}"},  # for programs
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_PROPS_TIMEOUT) as response:
        properties: dict[str, Any] = json.load(response)
    return properties
