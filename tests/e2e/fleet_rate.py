"""How many messages a second a fleet answers, by the number of its workers.

Run by itself: ``python tests/e2e/fleet_rate.py [WORKERS …]``, with the project and its tests on the path. All
processes, the database, the platform and the model share this machine, so beyond its cores more workers add
nothing; read the CPU of a message instead.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import anyio
from fleet_scenes import calm
from fleet_trial import Row, open_trial

_PEOPLE = 100
_FASTER_THAN_ANY = 10_000.0


async def measure(folder: Path, workers: int, messages: int = 200) -> Row:
    """Let a fleet answer as fast as it can; close its books, too.

    Args:
        folder: Holds what its processes keep.
        workers: How many, beside one gateway.
        messages: How many are said, after as many that open the sessions.
    """
    async with open_trial(
        folder, workers, people=_PEOPLE, gateways=1, workers=workers, rate=_FASTER_THAN_ANY
    ) as trial:
        await trial.play([calm, calm], messages)
        said = [one for one in trial.world.ledger.said if one.scene.startswith("2 ")]
        await trial.traffic.settled()
        last = max(one.shown_at for one in said if one.shown_at is not None)
        await trial.close()
    warm = trial.rows[-1]
    rate = messages / (last - said[0].at)
    return Row(workers=workers, rate=rate, cpu_ms=1_000 * warm["cpu"] / messages, p95=warm["p95"])


async def _main() -> None:
    for workers in map(int, sys.argv[1:] or ["1", "2", "4"]):
        row = await measure(Path(tempfile.mkdtemp(prefix="fleet-")), workers)
        told = "  ".join(f"{name} {value:.1f}" for name, value in row.items())
        sys.stdout.write(f"{told}\n")


if __name__ == "__main__":
    anyio.run(_main)
