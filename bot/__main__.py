"""The command ``tapebot``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bot.core.garbage import loading_modules

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code."""
    with loading_modules():
        from bot.cli.main import main as run
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
