"""Guess a model's capabilities from its name; no library is loaded for it.

Rule 1: the first family whose pattern matches decides; an unknown model gets the default.
Rule 2: a model missing from a table keeps its tools.
Rule 3: a price list may correct window, vision and JSON Schema support of a hosted model, never of
    a local one, whose window is set when its server is started.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bot.core.patterns import LazyPattern
from bot.llm.base import CapabilityProfile

_SMALL_LOCAL = CapabilityProfile(
    tools=False, json_schema=True, context_tokens=8_192, small=True, can_judge=False
)
_LARGE_LOCAL = CapabilityProfile(json_schema=True, context_tokens=16_384)
_LOCAL = LazyPattern(r"ollama(?:_chat)?/|gguf:")
_BILLIONS = LazyPattern(r"(?<![\d.])(\d+(?:\.\d+)?)b(?![a-z])", re.IGNORECASE)
_LARGE_FROM = 14.0

_FAMILIES: tuple[tuple[LazyPattern, CapabilityProfile], ...] = tuple(
    (LazyPattern(pattern, re.IGNORECASE), profile)
    for pattern, profile in (
        (
            r"gpt-5|gpt-4\.1|(?:^|/)o[134](?:-|$)",
            CapabilityProfile(json_schema=True, vision=True, context_tokens=200_000),
        ),
        (r"gpt-4o|gpt-4-turbo", CapabilityProfile(json_schema=True, vision=True)),
        (r"gpt-4", CapabilityProfile(context_tokens=8_192)),
        (r"gpt-3\.5", CapabilityProfile(context_tokens=16_000)),
        (r"claude", CapabilityProfile(json_schema=True, vision=True, context_tokens=200_000)),
        (r"gemini", CapabilityProfile(json_schema=True, vision=True, context_tokens=1_000_000)),
        (r"deepseek", CapabilityProfile()),
        (r"grok", CapabilityProfile(json_schema=True)),
        (r"mistral|mixtral|magistral|ministral", CapabilityProfile(json_schema=True)),
        (r"qwen|llama|gpt-oss|glm|kimi", CapabilityProfile(json_schema=True)),
    )
)


def profile_for(name: str, info: Mapping[str, Any] | None = None) -> CapabilityProfile:
    """Return a model's capabilities, given its entry in litellm's price list if there is one."""
    if _LOCAL.match(name):
        return _local(name)
    profile = next(
        (capability_profile for pattern, capability_profile in _FAMILIES if pattern.search(name)),
        None,
    )
    return _corrected(profile or CapabilityProfile(), info or {})


def _local(name: str) -> CapabilityProfile:
    size = _BILLIONS.search(name)
    large = size is not None and float(size[1]) >= _LARGE_FROM
    return _LARGE_LOCAL if large and not name.startswith("gguf:") else _SMALL_LOCAL


def _corrected(profile: CapabilityProfile, info: Mapping[str, Any]) -> CapabilityProfile:
    window = info.get("max_input_tokens")
    return replace(
        profile,
        context_tokens=window if isinstance(window, int) and window > 0 else profile.context_tokens,
        vision=profile.vision or info.get("supports_vision") is True,
        json_schema=profile.json_schema or info.get("supports_response_schema") is True,
    )
