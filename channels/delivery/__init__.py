"""Deliver outbound messages: per-chat queues, streaming, retries and rate limits."""
