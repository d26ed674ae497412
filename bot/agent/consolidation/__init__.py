"""Consolidation: what was said becomes history and long-term memory."""
