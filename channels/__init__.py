"""Adapters between chat platforms and the message bus. They know nothing of tapes or models."""
