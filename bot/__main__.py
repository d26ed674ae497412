"""The command ``tapebot``."""

from __future__ import annotations

import sys

from bot.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
