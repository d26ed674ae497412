"""The guided setup: its steps, checks and files; ``bot.cli.setup`` shows them."""

__all__ = [
    "checks",
    "providers",
    "setup",
    "steps",
]
