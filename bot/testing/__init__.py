"""What helps to test extensions.

Doubles: a scripted model, a channel in memory, a manual clock, the program in the test's process.
Contracts: tests that a class of yours inherits, for a tool, a channel, a model, a command. They need
pytest with anyio's plug-in; this package does not.
"""

__all__ = [
    "host",
    "manual_clock",
]
