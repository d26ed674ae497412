"""Search by ddgs; run as a program of its own, with the request and the hits as JSON.

It imports nothing of tapebot and gets no environment: a library that reads foreign servers' answers
affects only this process, which ends when the bot does.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from types import FrameType
from typing import Any

_ENGINES = ("duckduckgo", "brave", "mojeek", "yahoo", "startpage")
"""Asked in this order until one has hits."""
_NOTHING = (
    "no public search engine gave hits: there are none, or they refuse searches from here now"
)
_UNREACHED = "no public search engine can be reached"
_SECONDS = 6
_MEMORY = 1 << 30
_LOOK = 0.25


def search(query: str, count: int, seconds: float) -> dict[str, Any]:
    """Return ``hits``, or ``error`` if no engine answered."""
    from ddgs import DDGS
    from ddgs.exceptions import DDGSException

    answered = False
    deadline = time.monotonic() + seconds - _SECONDS - 1
    for engine in _ENGINES:
        try:
            hits = DDGS(timeout=_SECONDS).text(query, max_results=count, backend=engine)
        except DDGSException as error:
            # The library says so, too, for an engine that refuses.
            answered = answered or "No results" in str(error)
        else:
            if hits:
                return {"hits": hits}
        if time.monotonic() > deadline:
            break
    return {"error": _NOTHING if answered else _UNREACHED}


def _bounded(parent: int) -> None:
    """Limit this process's memory, and end it with its parent process."""

    def look(_signal: int, _frame: FrameType | None) -> None:
        if os.getppid() != parent:
            os._exit(1)

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK, _LOOK)


def main() -> None:
    """Search, and print the hits."""
    _bounded(int(sys.argv[1]))
    request = json.loads(sys.stdin.buffer.read())
    try:
        found = search(request["query"], request["count"], float(sys.argv[2]))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
