"""Programs at a terminal that tests start."""

from __future__ import annotations

import signal

import pexpect


def end(child: pexpect.spawn) -> None:
    """End a program, whatever it does, and let its terminal go."""
    # Closing it would leave a program a tenth of a second to be gone, and fail where it takes longer.
    if child.isalive():
        child.kill(signal.SIGKILL)
        child.wait()
    child.close()
