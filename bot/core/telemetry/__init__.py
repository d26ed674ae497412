"""Telemetry: logs, metrics, traces, health checks, watchdog and crash records."""

__all__ = [
    "active_work",
    "instruments",
    "logging",
    "metrics",
    "monitoring",
    "otlp",
    "redaction",
    "tracing",
    "watchdog",
]
