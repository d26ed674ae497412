"""How many tokens requests have, and how many of them a provider's cache cannot serve.

Rule 1: a request is its tools and then its messages, as compact JSON, in the order of the wire. Blanks after
    separators are no part of what a model reads, and clients differ in whether they send them.
Rule 2: a cache serves what a request's beginning has in common with an earlier request of the session, token by token.
Rule 3: it remembers the newest requests alone, so that a request in between does not empty it.

A provider's smallest cached prompt and block size are not modelled: they differ, and are the same for all.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Encode = Callable[[str], Sequence[int]]

_REMEMBERED = 8


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """Tokens of a session's requests; tools and contract (system messages) are those of the first."""

    requests: int
    sent: int
    uncached: int
    tools: int
    contract: int


def count_tokens(requests: Iterable[dict[str, Any]], encode: Encode) -> PromptTokens:
    """Count the tokens of one session's requests, bodies of chat completions, oldest first."""
    tokens = cache(lambda text: tuple(encode(text)))
    number = sent = uncached = 0
    fixed = (0, 0)
    earlier: deque[list[str]] = deque(maxlen=_REMEMBERED)
    for request in requests:
        parts = _parts(request)
        whole = sum(len(tokens(part)) for part in parts)
        served = max((_shared(one, parts, tokens) for one in earlier), default=0)
        if number == 0:
            fixed = _fixed(request, tokens)
        number, sent, uncached = number + 1, sent + whole, uncached + whole - served
        earlier.append(parts)
    return PromptTokens(number, sent, uncached, *fixed)


def _parts(request: dict[str, Any]) -> list[str]:
    """Return the request in pieces; equal pieces need not be compared token by token."""
    return [_compact(one) for one in (*(request.get("tools") or ()), *request["messages"])]


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _shared(before: list[str], parts: list[str], tokens: Encode) -> int:
    shared = 0
    for old, new in zip(before, parts, strict=False):
        if old != new:
            pairs = zip(tokens(old), tokens(new), strict=False)
            differing = (at for at, (one, other) in enumerate(pairs) if one != other)
            return shared + next(differing, min(len(tokens(old)), len(tokens(new))))
        shared += len(tokens(new))
    return shared


def _fixed(request: dict[str, Any], tokens: Encode) -> tuple[int, int]:
    tools = request.get("tools")
    system = [one["content"] for one in request["messages"] if one["role"] == "system"]
    texts = [one if isinstance(one, str) else _compact(one) for one in system]
    return len(tokens(_compact(tools))) if tools else 0, sum(len(tokens(one)) for one in texts)


def o200k() -> Encode | None:
    """Return what cuts a text into tokens of ``o200k_base``; None where litellm, which has the vocabulary, is not."""
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        return None
    folder = Path(package.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")
    return lambda text: encoding.encode(text, disallowed_special=())
