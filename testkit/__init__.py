"""Test servers on loopback for Telegram, Discord, OpenAI and PostgreSQL. Not in the wheel."""
