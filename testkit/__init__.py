"""Servers for tests that speak the real protocols on loopback: Telegram, Discord, OpenAI, PostgreSQL. Not in the wheel."""
