"""The tape: an append-only record per conversation."""
