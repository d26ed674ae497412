"""Ports for programs that are started by a test, and again after they were killed."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_port() -> Iterator[int]:
    """Yield a port of loopback that nobody else is given within the block.

    A program can listen there, time and again: on Linux a socket that is bound and does not listen is
    in nobody's way who says ``SO_REUSEADDR``, as servers do.
    """
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind(("127.0.0.1", 0))
        port = int(kept.getsockname()[1])
        if sys.platform != "linux":
            kept.close()
        yield port
