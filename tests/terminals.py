"""Programs at a terminal that tests start."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from pathlib import Path

import pexpect

SECONDS = 180


def at_terminal(
    folder: Path, variables: Mapping[str, str], *arguments: str, columns: int = 160
) -> pexpect.spawn:
    return pexpect.spawn(
        sys.executable,
        ["-m", "bot", *arguments],
        cwd=str(folder),
        env={"TERM": "xterm", **variables},
        timeout=SECONDS,
        encoding="utf-8",
        dimensions=(40, columns),
    )


def end(child: pexpect.spawn) -> None:
    """End a program, whatever it does, and let its terminal go."""
    # Closing it would leave a program a tenth of a second to be gone, and fail where it takes longer.
    if child.isalive():
        child.kill(signal.SIGKILL)
        child.wait()
    child.close()
