"""The composition root: builds the program from the settings and runs it; alone sees channels."""

from bot.runtime.app.build import App, open_app
from bot.runtime.app.models import make_judge, make_model, make_presets
from bot.runtime.app.serve import run, serve

__all__ = [
    "App",
    "build",
    "daily_backup",
    "database_services",
    "file_services",
    "make_judge",
    "make_model",
    "make_presets",
    "mcp",
    "memory_clients",
    "models",
    "open_app",
    "person_erasure",
    "plugins",
    "residual_files",
    "run",
    "scheduler",
    "serve",
    "tape_stores",
    "web_tools",
]
