"""Adapters between chat platforms and the message bus; they do not use tapes or models."""
