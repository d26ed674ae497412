"""Mend what a server sends before the library reads it, so that one bad part costs that part alone. Pure."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse, Tool, methods
from pydantic import ValidationError

from bot.agent.foreign_text import one_line
from bot.core.patterns import LazyPattern

_KEPT = ("name", "description", "inputSchema", "annotations")
_LONGEST_NAME = 80
_LONGEST_REASON = 200
# Pairs of surrogates and other escapes are passed over, so that no backslash is read twice.
_ESCAPE = LazyPattern(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def mend_text(data: bytes) -> bytes:
    """Return JSON as valid UTF-8, with a replacement for each half of a character."""
    text = data.decode("utf-8", "replace")
    return _ESCAPE.sub(_mended_escape, text).encode()


def _mended_escape(found: re.Match[str]) -> str:
    return r"\ufffd" if found[1] else found[0]


class MendedStream:
    """Messages of a server, with only those tools in lists of tools that can be used.

    Args:
        stream: The messages.
        left_out: Receives why a tool is left out, by its name.
    """

    def __init__(self, stream: Any, left_out: dict[str, str]) -> None:
        self._stream = stream
        self._left_out = left_out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stream.__aexit__(kind, error, trace)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> object:
        received = await self._stream.__anext__()
        message = received.message if isinstance(received, SessionMessage) else None
        if isinstance(message, JSONRPCResponse) and isinstance(message.result.get("tools"), list):
            message.result["tools"] = self._usable(message.result["tools"])
        return received

    def _usable(self, tools: list[object]) -> list[dict[str, Any]]:
        kept = []
        for one in tools:
            fields = one if isinstance(one, dict) else {}
            tool = {key: fields[key] for key in _KEPT if key in fields}
            try:
                Tool.model_validate(tool, by_name=False)
                methods.validate_server_result("tools/list", "2025-11-25", {"tools": [tool]})
            except ValidationError as error:
                found = error.errors()[0]
                place = ".".join(str(part) for part in found["loc"] if part not in ("tools", 0))
                told = one_line(f"{place}: {found['msg']}", _LONGEST_REASON)
                self._left_out[one_line(str(fields.get("name")), _LONGEST_NAME)] = told
            else:
                kept.append(tool)
        return kept
