"""The composition root: the only part of ``bot`` that sees channels."""

from bot.app.build import App, make_judge, make_model, open_app
from bot.app.serve import run, serve

__all__ = ["App", "make_judge", "make_model", "open_app", "run", "serve"]
