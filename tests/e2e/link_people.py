"""The person whom the tests of joined channels join."""

from __future__ import annotations

ADA, ELSE = "fake:7", "other:9"
"""Ada's private chat on one channel, and on another."""
