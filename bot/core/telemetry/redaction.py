"""Remove secrets from text. Pure.

Rule 1: a known value is removed wherever it stands, in every common quoting.
Rule 2: what looks like a credential is removed even if it is unknown.
Rule 3: the time is linear in the text's length, whatever the text contains.
Rule 4: redaction is idempotent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

from bot.core.patterns import LazyPattern

MARK = "[redacted]"
"""Replaces a secret."""

_SHORTEST = 4  # a shorter value is part of ordinary words

# Each starts with a literal, so that a text without credentials costs a single scan.
_PATTERNS = tuple(
    LazyPattern(pattern)
    for pattern in (
        # api_key=..., "password": "...", ?key=...: a named value, quoted or bare.
        r"""(?ix)(
              (?: api_?-?key | access_?-?key | (?:access|auth|refresh|bot|id|session)[_-]?token
                | secret(?:[_-]?key)? | passw(?:or)?d | authorization | [?&](?:key|token) | \btoken(?==) )
              \\*["']?\s{0,8}[:=]\s{0,8}(?:b(?=["']))?+
              (?: \\*["'] | (?:bearer|basic|token)\s{1,8} )?+
            )
            (?!\[redacted\])
            (?: (?<=")(?:[^"\n\\]|\\(?!"))+ | (?<=')(?:[^'\n\\]|\\(?!'))+ | [^\s"'\\&,;)}\]]+ )""",
        # Bearer credentials without a header name.
        r"(?i)\b(bearer\s{1,8})[\w.~+/=:-]{8,}",
        # A URL's user and password.
        r"""(?<=://)()[^\s/?#"'<>\\]+(?=@)""",
        # Telegram bot tokens; in a URL they follow "bot" directly.
        r"(?<!\d)()\d{8,10}:[\w-]{35,}",
        # Keys by their provider's prefix.
        r"(?<![A-Za-z0-9])()sk-[\w-]{4,}",
        r"(?<![A-Za-z0-9])()(?:AIza|xai-|gsk_|hf_|ghp_|github_pat_|xox[abprs]-)[\w-]{16,}",
        # Three long parts between dots: JSON web tokens and the like.
        r"(?<![\w.-])()[\w-]{20,}\.[\w-]{6,}\.[\w-]{20,}",
    )
)


class Redactor:
    """Removes given values, and what looks like a credential, from texts.

    Args:
        secrets: Values that must never be shown; values under four characters are ignored.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        forms: set[str] = set()
        for secret in {value.strip() for value in secrets}:
            if len(secret) >= _SHORTEST:
                forms |= {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
                forms |= {repr(secret)[1:-1], json.dumps(secret)[1:-1]}
                forms.add(json.dumps(secret, ensure_ascii=False)[1:-1])
        # The longest first: a secret may contain another.
        longest = sorted(forms, key=lambda form: (-len(form), form))
        self._known = re.compile("|".join(map(re.escape, longest))) if longest else None

    def __call__(self, text: str) -> str:
        """Return the text with each secret replaced by ``[redacted]``."""
        if self._known is not None:
            text = self._known.sub(MARK, text)
        for pattern in _PATTERNS:
            text = pattern.sub(rf"\1{MARK}", text)
        return text


redact = Redactor()
"""Removes what looks like a credential; a ``Redactor`` with secrets also removes known values."""
