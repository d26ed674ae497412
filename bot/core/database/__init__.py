"""PostgreSQL shared by processes: connections, migrations, wake-ups, leases, health checks."""

__all__ = [
    "connections",
    "health_checks",
    "leases",
    "migrations",
    "pool",
    "wakeups",
]
