"""Foundations that know nothing of the rest: errors, clock, files, HTTP, telemetry, database."""

__all__ = [
    "addresses",
    "clock",
    "database",
    "errors",
    "fetch",
    "files",
    "http",
    "i18n",
    "ids",
    "installation",
    "nesting",
    "plugins",
    "reason_messages",
    "reasons",
    "recurrence",
    "response_limits",
    "stemming",
    "telemetry",
    "text",
]
