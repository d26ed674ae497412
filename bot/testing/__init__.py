"""Test doubles for extensions: scripted model, fake channel, manual clock, in-process host."""

__all__ = [
    "host",
    "manual_clock",
]
