"""PostgreSQL shared by processes: connections, tables, wake-ups, leases, health checks."""

__all__ = [
    "connections",
    "health_checks",
    "leases",
    "schema",
    "wakeups",
]
