"""Telemetry: logs, metrics, traces, health checks, watchdog and crash records."""
