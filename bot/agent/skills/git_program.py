"""Run git within limits of time, memory and file sizes; run as a program of its own.

Its arguments are seconds, the largest file in bytes, git, and git's arguments.
"""

from __future__ import annotations

import os
import resource
import signal
import sys

_MEMORY = 1 << 30


def main() -> None:
    """Set the limits, which git and what it starts inherit, and become git."""
    seconds, largest = int(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        # Python ignores them, and git would inherit that.
        signal.signal(ignored, signal.SIG_DFL)
    # It outlives the call: git ends even if tapebot was killed.
    signal.alarm(seconds)
    os.execv(sys.argv[3], sys.argv[3:])  # noqa: S606 (a list, no shell)


if __name__ == "__main__":
    main()
