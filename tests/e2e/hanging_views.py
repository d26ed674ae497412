"""A context builder that hangs or crashes, as a package of somebody else might: in Python, or in C."""

from __future__ import annotations

import ctypes
from pathlib import Path

from bot.agent.context import ContextBuilder, default_context
from bot.runtime.sessions import poison_messages as suspects

# Programs that are forked are heard at once.
suspects._FIRST_PAUSE = 4.0


def render(window, rendered=None, anchors=()):
    messages = default_context(window, rendered, anchors)
    said = str(messages[-1].get("content"))
    if Path("mended").exists():
        return messages
    while "Loop for ever" in said:
        pass
    if "Crash at once" in said:
        ctypes.string_at(0)
    return messages


HANGING = ContextBuilder("hanging", render)


def install(site: Path) -> None:
    """Make it a package that is installed for programs that have the folder on their path."""
    info = site / "hanging_views-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hanging-views\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[tapebot.context_builders]\nhanging = hanging_views:HANGING\n"
    )
    (site / "hanging_views.py").write_text(Path(__file__).read_text("utf-8"), "utf-8")
