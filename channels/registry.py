"""Builds the channels that are set up; each is imported only when it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from channels.base import Channel


def console(
    *,
    history_file: Path | None,
    user_name: str,
    commands: Sequence[tuple[str, str]],
    banner: str,
) -> Channel:
    """Return the console: the person who started the program."""
    from channels.console import ConsoleChannel

    return ConsoleChannel(
        history_file=history_file, user_name=user_name, commands=commands, banner=banner
    )
