"""PostgreSQL shared by processes: connections, migrations, wake-ups, leases, health checks."""
