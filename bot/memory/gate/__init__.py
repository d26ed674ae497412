"""Checks between a proposed claim and long-term memory: evidence, conflicts, secrets, orders."""
