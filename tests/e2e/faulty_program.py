"""``tapebot run``, which kills itself at a system call that changes a file: ``CALLS PART [wait]``.

It dies at that many such calls (``kill_fault.Fault``), 0 for none, counted from its start, or with ``wait``
from SIGUSR1 on; of a write, that part is done.
"""

from __future__ import annotations

import signal
import sys

from kill_fault import FAULT

from bot.cli.main import main

calls, part = int(sys.argv[1]), float(sys.argv[2])
FAULT.install()
if sys.argv[3:]:
    signal.signal(signal.SIGUSR1, lambda *_: FAULT.arm(calls, part))
else:
    FAULT.arm(calls, part)
sys.exit(main(["run"]))
