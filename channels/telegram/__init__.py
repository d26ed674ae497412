"""Telegram as a channel."""

from channels.telegram.channel import TelegramChannel
from channels.telegram.receiving import receive
from channels.telegram.webhook import WebhookPlace, webhook_place

__all__ = ["TelegramChannel", "WebhookPlace", "receive", "webhook_place"]
