"""Whether this process has nearly used up the memory that it may have."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_OF_LIMIT = 0.9
_OF_MACHINE = 0.5
_LEFT = 0.03
_KILOBYTE = 1_024


def memory_is_low(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> bool:
    """Say whether it holds nine tenths of its group's limit, or half of a machine of which hardly any is left.

    Where the system does not tell, it is not.

    Args:
        proc: Where the kernel tells of processes and memory.
        groups: Where it tells of control groups.
    """
    held = _lines(proc / "self" / "status").get("VmRSS", 0)
    limit = _limit(proc, groups)
    if limit and held > _OF_LIMIT * limit:
        return True
    machine = _lines(proc / "meminfo")
    total = machine.get("MemTotal", 0)
    return held > _OF_MACHINE * total > 0 and machine.get("MemAvailable", total) < _LEFT * total


def _lines(path: Path) -> dict[str, int]:
    """Return the figures of a file of lines such as ``VmRSS:  12 kB``, in bytes."""
    found: dict[str, int] = {}
    with suppress(OSError):
        for line in path.read_text("ascii", "replace").splitlines():
            name, _, rest = line.partition(":")
            words = rest.split()
            if len(words) == 2 and words[0].isdecimal() and words[1] == "kB":
                found[name] = int(words[0]) * _KILOBYTE
    return found


def _limit(proc: Path, groups: Path) -> int:
    """Return the limit of the process's group in bytes, of either version; 0 where there is none."""
    own = ""
    with suppress(OSError):
        for line in (proc / "self" / "cgroup").read_text("utf-8", "replace").splitlines():
            if line.startswith("0::/"):
                own = line.removeprefix("0::/").strip()
    for path in (
        groups / own / "memory.max",
        groups / "memory.max",
        groups / "memory" / "memory.limit_in_bytes",
    ):
        with suppress(OSError):
            told = path.read_text("ascii", "replace").strip()
            if told.isdecimal():
                return int(told)
    return 0
