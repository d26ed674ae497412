"""Make access tokens, read them from requests and look them up. Pure but for randomness.

Rule 1: a token is 32 random bytes and is shown once; only its SHA-256 is stored.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import TypeVar

LONGEST = 200
"""Characters of a token, a cookie's value or a CSRF token; longer ones are invalid."""

T = TypeVar("T")


def new_token(prefix: str = "") -> str:
    """Return a new token."""
    return prefix + secrets.token_urlsafe(32)


def token_digest(token: str) -> str:
    """Return the SHA-256 of a token, hexadecimal; only this is stored."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def find_by_digest(known: Iterable[tuple[str, T]], digest: str) -> T | None:
    """Return what belongs to a digest; None if it is unknown."""
    # All are compared, so that the time taken reveals nothing.
    same = [one for held, one in known if compare_digest(held, digest)]
    return same[0] if same else None


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """Return the bearer token; empty if malformed, None without an Authorization header."""
    given = headers.get("authorization")
    if given is None:
        return None
    scheme, _, token = given.partition(" ")
    fit = scheme.lower() == "bearer" and len(token) <= LONGEST
    return token.strip() if fit else ""
