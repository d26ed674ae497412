"""A program that imports and is killed in the middle of a chosen write."""

from __future__ import annotations

_PROGRAM = """
import os, signal, sys
from pathlib import Path
from bot.core import append_file, files
from bot.runtime.settings import load_settings
{imported}

home, source, wanted, part = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
write, count = files.write_all, 0

def dying(descriptor, data):
    global count
    count += 1
    if count == wanted:
        os.write(descriptor, bytes(data)[: int(len(data) * float(part))])
        os.kill(os.getpid(), signal.SIGKILL)
    write(descriptor, data)

files.write_all = append_file.write_all = dying
settings = load_settings(home=home, timezone="UTC", retention_days=30)
{call}
"""


def killed_import(imported: str, call: str) -> str:
    """Return a program of four arguments: home, source, number of the write, and how much of it happens.

    Args:
        imported: The line that imports the importer.
        call: The line that calls it with ``settings`` and ``source``.
    """
    return _PROGRAM.format(imported=imported, call=call)
