"""Implement ``TapeStore`` in memory, in files, in PostgreSQL and over HTTP."""
