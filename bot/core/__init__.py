"""Foundations that know nothing of the rest: errors, clock, files, HTTP, telemetry, database."""

__all__ = [
    "addresses",
    "clock",
    "database",
    "errors",
    "fetch",
    "files",
    "http",
    "ids",
    "plugins",
    "recurrence",
    "response_limits",
    "stemming",
    "telemetry",
    "text",
]
