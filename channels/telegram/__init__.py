"""The Telegram channel, on aiogram: polling or webhook, rendering and delivery."""

from channels.telegram.channel import TelegramChannel
from channels.telegram.webhook import WebhookEndpoint, parse_webhook_endpoint, receive_updates

__all__ = ["TelegramChannel", "WebhookEndpoint", "parse_webhook_endpoint", "receive_updates"]
