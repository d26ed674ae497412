"""PostgreSQL, which many processes share: connections, migrations, wake-ups and leases."""
