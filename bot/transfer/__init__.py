"""Bringing tapes out and in: exports people can read, imports from other assistants."""
