"""A disk that refuses: conversations go on by themselves, and nothing that was acknowledged is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from sampling import is_sample, some

ROOT = Path(__file__).parents[2]
HOST = Path(__file__).with_name("disk_host.py")

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="which file a call is about is known from /proc"
)


def lives(
    folder: Path, faults: Iterable[dict[str, Any]], *, before: Iterable[str] = (), at_once: int = 2
) -> list[dict[str, Any]]:
    """Live once with each fault; return what was met, after seeing that each ended well.

    Args:
        folder: The homes are in it.
        faults: See ``disk_host.Fault``.
        before: What runs the host, if not the system itself.
        at_once: How many live at the same time.
    """
    lines = [
        json.dumps({**fault, "home": str(folder / f"home-{number}")})
        for number, fault in enumerate(faults)
    ]
    with (folder / "errors.txt").open("w") as errors:
        done = subprocess.run(
            [*before, sys.executable, str(HOST)],
            input="\n".join(lines),
            stdout=subprocess.PIPE,
            stderr=errors,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "PYTHONPATH": str(ROOT),
                "AT_ONCE": str(at_once),
            },
            text=True,
            timeout=240,
            check=True,
        )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(lines)
    failed = [
        (life["fault"], life["refused"][:3], life["failure"]) for life in found if life["failure"]
    ]
    assert not failed, f"{len(failed)} of {len(found)} did not end well; the first: {failed[0]}"
    return found


def summary(found: list[dict[str, Any]]) -> Counter[str]:
    refused = Counter(what for life in found for what in life["refused"])
    longest = max(life["seconds"] for life in found)
    sys.stdout.write(
        f"{len(found)} lives, {longest:.1f} s at most, refused: {dict(sorted(refused.items()))}\n"
    )
    return refused


@pytest.mark.slow
def test_each_kind_of_refused_call_costs_no_conversation(tmp_path: Path):
    """One call of each name in each place, at its first and at a later one."""
    places = ("tapes", "index", "bus", "blobs")
    calls = ("open", "write", "fsync", "fdatasync", "ftruncate", "rename", "replace")
    faults = [
        {"first": first, "only": call, "place": place, "error": error}
        for call, error in zip(calls, ["EIO", "ENOSPC"] * 4, strict=False)
        for place in places
        for first in (1, 3)
    ]
    refused = summary(lives(tmp_path, some(faults)))
    # Not every call is made in every place.
    if is_sample():
        return
    assert {"fdatasync tapes", "fdatasync bus", "write tapes", "write bus", "write blobs"} <= set(
        refused
    )
    assert {"open index", "rename tapes", "replace bus", "fsync blobs"} <= set(refused)


@pytest.mark.slow
def test_a_full_disk_costs_no_conversation_once_there_is_room_again(tmp_path: Path):
    """A file system of its own, filled to the last byte: SQLite meets that as well."""
    small = tmp_path / "small"
    small.mkdir()
    mounted = f'mount -t tmpfs -o size=6m none "{small}" && exec "$@"'
    before = ["unshare", "-m", "sh", "-c", mounted, "sh"]
    try:
        subprocess.run([*before, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a file system of its own cannot be mounted here: {error}")
    faults = [{"first": first, "many": 150, "full": True} for first in some(range(1, 180, 6))]
    found = lives(small, faults, before=before, at_once=1)
    told = Counter(text for life in found for text in life["told"])
    assert any("the disk is full" in text for text in told), told
