"""``tapebot COMMAND``, which kills itself at a system call that changes a file: ``COMMAND FAULT [wait]``.

FAULT is what ``kill_fault.Fault.arm`` is given, as JSON; it counts from the start, or with ``wait`` from SIGUSR1 on.
"""

from __future__ import annotations

import json
import signal
import sys

from kill_fault import FAULT

from bot.cli.main import main

command, fault = sys.argv[1], json.loads(sys.argv[2])
FAULT.install()
if sys.argv[3:]:
    signal.signal(signal.SIGUSR1, lambda *_: FAULT.arm(**fault))
else:
    FAULT.arm(**fault)
sys.exit(main([command]))
