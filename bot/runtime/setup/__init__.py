"""The guided setup: its steps, checks and files; ``bot.cli.setup`` and the site show them."""

__all__ = [
    "checks",
    "next_steps",
    "pages",
    "setup",
    "steps",
]
