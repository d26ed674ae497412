"""Random identifiers."""

from __future__ import annotations

import secrets


def new_id(prefix: str) -> str:
    """Return ``prefix-`` and 16 random hexadecimal digits."""
    return f"{prefix}-{secrets.token_hex(8)}"
