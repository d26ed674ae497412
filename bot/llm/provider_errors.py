"""Map provider exceptions to ``ModelError`` subclasses, with a short safe text.

Rule 1: the HTTP status decides; the text is used only if the status is too coarse or missing.
Rule 2: the error's text is one short line for people, and holds no key.
Rule 3: rate limits, timeouts, broken connections and 5xx are transient.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from bot.core.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRejected,
    TransientModelError,
)
from bot.core.patterns import LazyPattern
from bot.core.reasons import Reason, reason_of

_LONGEST = 240
# Providers' messages for a prompt that is too long.
_OVERFLOW = LazyPattern(
    r"context[ _](?:length|window|size|limit)|maximum (?:context|prompt length)|token[ _]limit|tokens_limit"
    r"|too many (?:input |prompt )?tokens|number of tokens allowed|less than \d{1,9} tokens"
    r"|(?:prompt|input|request|messages?|conversation)(?: is| are|:)? too (?:long|large)"
    r"|(?:prompt|input)(?: length| tokens?)? exceeds? (?:the )?max|exceeds? the (?:available )?context"
    r"|exceed_context_size|reduce the length of (?:the|your) (?:messages|prompt|input)"
    r"|(?:body|request) too large for \S{1,80} model|`inputs` tokens|input length|model(?:'s)? length",
    re.IGNORECASE,
)
_RATE = LazyPattern(
    r"per (?:min|minute|hour|day)\b|\b(?:TPM|TPD|RPM)\b|rate[ _]limit", re.IGNORECASE
)
_ACCOUNT = LazyPattern(
    r"api[ _-]?key|(?:invalid|incorrect|wrong|expired)[ _](?:key|token)\b|unauthorized|authenticat|billing"
    r"|payment|arrear|no credit|credit balance|(?:not enough|insufficient|low)[ _](?:credit|quota|balance|fund)"
    r"|balance (?:is )?(?:too low|insufficient|not enough)|quota[ _](?:exceed|exhaust)|current quota|余额|欠费"
    r"|(?:no such|unknown|invalid)[ _]model\b|model[ _]not[ _](?:found|exist)"
    r"|\bmodel\b[^\n]{0,80}(?: not found| does ?n[o']t exist)",
    re.IGNORECASE,
)
"""Providers' words for a key, a payment or a model's name; those for content may quote anything."""

_POLICY = LazyPattern(r"content[ _](?:filter|policy)|\bblocked|flagged|moderation", re.IGNORECASE)
_LIMIT = LazyPattern(
    r"(?:max(?:imum)?|limit|at most|less than|n_ctx|>|<=?)\b[^\d\n]{0,60}(\d[\d,_]{2,9})",
    re.IGNORECASE,
)
_NUMBER = LazyPattern(r"\d[\d,_]{2,9}")
_LEAST_LIMIT = 600
"""Smaller numbers in an error are statuses and positions."""

_WAIT = LazyPattern(
    r"(?:retry|again|wait|reset)\w{0,10}\W{1,4}(?:\w{1,8} ){0,3}(\d{4}-\d\d-\d\dT[\d:.]{1,20}Z?|(?:\d{1,13}(?:\.\d{1,9})?\s?"
    r"(?:ms|h(?:ours?)?|m(?:in(?:ute)?s?)?|s(?:ec(?:ond)?s?)?)?\s?){1,4})",
    re.IGNORECASE,
)
_ISO_DATE = LazyPattern(r"\d{4}-\d\d-\d\dT")
_EPOCH, _EPOCH_MS = 1e9, 1e12
"""Larger numbers are moments, in seconds or milliseconds since 1970."""

_PART = LazyPattern(r"(\d+(?:\.\d+)?)\s?(ms|h|m|s|)", re.IGNORECASE)
_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3_600.0}
# Messages of Python and pydantic for a reply of an unexpected shape.
_UNREADABLE = LazyPattern(
    r"NoneType|object is not|has no attribute|not subscriptable|validation errors? for|Error parsing chunk"
    r"|Expecting (?:value|property|',')|json response|provider returned|index out of range|Extra data: line"
    r"|Unterminated string|Received=|Invalid response object",
)
UNREADABLE_REPLY = Reason("model_unreadable")
_PREFIX = LazyPattern(r"^(?:\s*(?:litellm\.)?\w*(?:Error|Exception)\s*(?::|-)\s*)+")
_NOISE = LazyPattern(r"(?:(?<!\s)\s++)?ssl:<[^>]{0,300}>|<[^<>]* object at 0x[0-9a-f]+>")
_KEY = LazyPattern(r"\b(?:sk|pk|rk|gsk|xai|hf|AIza)[-_]?[A-Za-z0-9*_-]{6,}|(?<=Bearer )\S+")
_SECRET_NAMES = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_RETRYABLE = frozenset({408, 409, 413, 425, 429})
_OF_CONTENT = frozenset({400, 413, 415, 422, 451})


def model_error(
    exc: Exception, *, name: str, now: datetime, secret: str | None = None
) -> ModelError:
    """Return the ``ModelError`` for a client's exception, without the secret in its text."""
    cause = getattr(exc, "original_exception", None) or exc
    status = getattr(cause, "status_code", None)
    whole = str(cause)
    error, told = clean_error_text(whole, secret), reason_of(cause)
    # A reason that holds a secret, or words of a server at length, is a text in English alone.
    error = told if error == told else _in_short(cause) or error
    text = Reason("model_said", model=name, error=error)
    if "LLM Provider NOT provided" in whole:
        return ModelRejected(Reason("model_no_provider", model=name), of_content=False)
    if status not in {401, 403, 429} and _is_overflow(cause, status, whole):
        return ContextOverflow(text, of_content=status == 413)
    if status == 403 and "flagged_input" in whole:
        # OpenRouter's moderation.
        return ModelRejected(text)
    if status in {401, 403}:
        return ModelAuthError(text)
    if status == 400 and "tool_use_failed" in whole:
        # Groq could not read the call that the model wrote; the next one may be right.
        return TransientModelError(text)
    if status == 429 and "insufficient_quota" in whole:
        return ModelRejected(text, of_content=False)
    if status is None or status in _RETRYABLE or status >= 500:
        wait = retry_after(_headers(exc, cause), now, whole)
        return TransientModelError(text, retry_after=wait, of_content=status == 500)
    return ModelRejected(text, of_content=status in _OF_CONTENT and not is_of_account(whole))


def _in_short(exc: Exception) -> str | None:
    """Return a fixed text for errors whose own text is of no use; None for others."""
    status = getattr(exc, "status_code", None)
    if (status is None or not 400 <= status < 500) and _UNREADABLE.search(str(exc)):
        return UNREADABLE_REPLY
    if "timeout" in type(exc).__name__.lower():
        return Reason("model_timeout")
    if getattr(exc, "status_code", None) in {401, 403}:
        return Reason("model_key_refused")
    return None


def _is_overflow(exc: Exception, status: int | None, text: str) -> bool:
    if type(exc).__name__ == "ContextWindowExceededError":
        return True
    return (status == 413 or bool(_OVERFLOW.search(text))) and not is_rate_limit(text)


def is_rate_limit(text: str) -> bool:
    """Return whether an error is a limit on what may be sent in a time."""
    return bool(_RATE.search(text))


def is_of_account(text: str) -> bool:
    """Return whether an error is about the key, the payment or the model's name, not the request."""
    return bool(_ACCOUNT.search(text)) and not _POLICY.search(text)


def named_limit(text: str) -> int | None:
    """Return the number of tokens that an error names as a limit; None if it names none."""
    named = [found[1] for found in _LIMIT.finditer(text)]
    numbers = [int(re.sub(r"[,_]", "", one)) for one in named or _NUMBER.findall(text)]
    fits = [one for one in numbers if one >= _LEAST_LIMIT]
    return None if not fits else fits[0] if named else min(fits)


def _headers(*raised: Exception) -> Mapping[str, str]:
    for exc in raised:
        response = getattr(exc, "response", None)
        for source in (exc, response):
            for attribute in ("litellm_response_headers", "headers"):
                headers = getattr(source, attribute, None)
                if headers:
                    return {str(key).lower(): str(headers[key]) for key in headers}
    return {}


def retry_after(headers: Mapping[str, str], now: datetime, text: str = "") -> float | None:
    """Return the seconds to wait that headers, with names in lower case, or a text ask for; None if none."""
    told = [f"{value}ms" for name, value in headers.items() if name.endswith("retry-after-ms")]
    told += [headers.get("retry-after", "")]
    if found := _WAIT.search(text):
        field = found[0].removesuffix(found[1]).rstrip("\"'=: ").lower()
        told.append(f"{found[1]}ms" if field.endswith("ms") else found[1])
    resets = {name: value for name, value in headers.items() if "limit" in name and "reset" in name}
    used_up = [
        value
        for name, value in resets.items()
        if headers.get(name.replace("reset", "remaining")) == "0"
    ]
    waits = (_seconds(value, now) for value in told)
    named = next((wait for wait in waits if wait is not None), None)
    if named is not None:
        return named
    ends = (_seconds(value, now) for value in used_up or resets.values())
    return min((wait for wait in ends if wait is not None), default=None)


def _seconds(value: str, now: datetime) -> float | None:
    """Return how long a wait is: a number, a duration, a date, or a moment in seconds since 1970."""
    value = value.strip()
    if value.startswith("-"):
        return 0.0
    try:
        if _ISO_DATE.match(value):
            return max(0.0, (datetime.fromisoformat(value) - now).total_seconds())
        parts = _PART.findall(value) if value[:1].isdigit() else []
        seconds = sum(float(number) * _UNITS[unit.lower()] for number, unit in parts)
    except (ValueError, TypeError):
        return None
    if not parts:
        return _until(value, now)
    if seconds > _EPOCH_MS:
        seconds /= 1_000
    return max(0.0, seconds - now.timestamp()) if seconds > _EPOCH else seconds


def _until(date: str, now: datetime) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - now).total_seconds())


def clean_error_text(text: str, secret: str | None = None) -> str:
    """Return a provider's message as one short line without class names, markup or keys."""
    text = _PREFIX.sub("", text)
    text = _NOISE.sub("", _message(text))
    for key in _secrets(secret):
        text = text.replace(key, "[key]")
    text = " ".join(_KEY.sub("[key]", text).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _message(text: str) -> str:
    """Return the message of a JSON error object in a text; the text itself if there is none."""
    start = text.find("{")
    if start < 0:
        return text
    try:
        body, _ = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return text
    error = body.get("error", body)
    if isinstance(error, dict):
        error = error.get("message")
    return error if isinstance(error, str) and error else text


def _secrets(secret: str | None) -> list[str]:
    found = {value for name, value in os.environ.items() if name.upper().endswith(_SECRET_NAMES)}
    found.add(secret or "")
    return sorted((value for value in found if len(value) >= 6), key=len, reverse=True)
