"""Foundations that know nothing of the rest: errors, clock, files, HTTP, telemetry, database."""
