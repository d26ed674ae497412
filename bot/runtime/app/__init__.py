"""The composition root: the only part of ``bot`` that sees channels."""

from bot.runtime.app.build import App, make_judge, make_model, open_app
from bot.runtime.app.serve import run, serve

__all__ = ["App", "make_judge", "make_model", "open_app", "run", "serve"]
