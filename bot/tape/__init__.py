"""Append-only tapes, one per conversation, with their stores, search index and HTTP server."""
