"""Telegram as a channel."""

from channels.telegram.channel import TelegramChannel
from channels.telegram.webhook import WebhookPlace

__all__ = ["TelegramChannel", "WebhookPlace"]
