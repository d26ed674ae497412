"""Showing answers on a platform: a queue per chat, streaming by edits, floods waited out."""
