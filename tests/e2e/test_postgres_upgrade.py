"""The runbook's upgrade, played: tables first, then workers, then gateways, one at a time, while people talk."""

from __future__ import annotations

import io
import os
import random
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from fleet_trial import Row, Trial, open_trial
from platform_stage import now
from preloaded import run_program

SEED = 20_261_126

ROOT = Path(__file__).parents[2]
BEFORE = "TESTS_VERSION_BEFORE"
"""Names the commit of the version before; unset: the newest release's tag, or else the last commit with older tables."""
MIGRATIONS = "bot/core/database/migrations"


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def commit_before() -> str:
    """Return the commit of the version before this one."""
    if named := os.environ.get(BEFORE):
        return named
    tags = git("tag", "--merged", "HEAD~1", "--sort=-version:refname").decode().split()
    released = [tag for tag in tags if re.fullmatch(r"v\d+\.\d+\.\d+", tag)]
    if released:
        return released[0]
    newest_tables = git("log", "-1", "--diff-filter=A", "--format=%H", "--", MIGRATIONS)
    return f"{newest_tables.decode().strip()}^"


@pytest.fixture
def version_before(tmp_path: Path) -> Path:
    """The source of the version before this one, from the repository's history."""
    if not (ROOT / ".git").exists() or git("rev-parse", "--is-shallow-repository") == b"true\n":
        pytest.skip("the version before is in the repository's history, which is not here")
    tree = tmp_path / "before"
    source = git("archive", commit_before(), "bot", "channels")
    with tarfile.open(fileobj=io.BytesIO(source)) as archive:
        archive.extractall(tree, filter="data")
    return tree


async def roll(trial: Trial) -> Row:
    """Replace every process by a new one, while somebody always talks."""
    fleet, traffic, slowest, done = trial.fleet, trial.traffic, 0.0, anyio.Event()

    async def keep_talking() -> None:
        while not done.is_set():
            await traffic.talk(10)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keep_talking)
        fleet.tree = None
        home = fleet.folder / "migrate"
        home.mkdir()

        def migrate() -> str:
            named = {"TAPEBOT_HOME": str(home), "TAPEBOT_DATABASE_URL": trial.world.database or ""}
            kept = {"HOME": str(home), "PATH": os.environ["PATH"]}
            arguments = ["-m", "bot", "db", "migrate"]
            return run_program(arguments, environment=kept | named, cwd=home, timeout=200).stdout

        assert "have this version" in await anyio.to_thread.run_sync(migrate)
        for member in [*fleet.workers, *fleet.gateways]:
            said, at = len(trial.world.ledger.said), now()
            slowest = max(slowest, await fleet.stop(member))
            # What was on its way to its receipt may be shown once more.
            fleet.blow("replaced", member, at)
            await fleet.start(member)
            await fleet.until(
                lambda before=said: any(
                    one.shown_at is not None for one in trial.world.ledger.said[before:]
                ),
                "nobody who spoke meanwhile was answered",
            )
        done.set()
    return Row(whole=slowest)


@pytest.mark.family("fleets")
@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_an_upgrade_of_one_process_after_the_other_loses_no_message(tmp_path: Path) -> None:
    """Each is asked to stop, hands back what it has, and another one is started in its place."""
    seed = random.Random(SEED).randrange(1_000_000)
    async with open_trial(tmp_path, seed, people=40, rate=15) as trial:
        await trial.play([roll], 20)
        lives = [one.lives for one in trial.fleet.members.values()]
        found = await trial.close()
    sys.stdout.write(f"\n{trial.table(found)}\n")
    assert lives == [2] * 5
    assert found.messages > 50


@pytest.mark.family("fleets")
@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_version_before_works_beside_this_one(
    tmp_path: Path, version_before: Path
) -> None:
    """The tables are this version's while processes of the version before go on, one replaced after the other."""
    async with open_trial(
        tmp_path, SEED, people=20, rate=5, lease=15.0, workers=2, tree=version_before
    ) as trial:
        # Its processes import their libraries themselves, all at once; one that starts late finds newer tables.
        members = trial.fleet.members.values()
        await trial.fleet.until(
            lambda: all("started with" in one.logs() for one in members),
            "not all have started",
            300,
        )
        trial.traffic.speak()
        await trial.traffic.settled(within=300)
        await trial.play([roll], 20)
        lives = [one.lives for one in members]
        found = await trial.close()
    sys.stdout.write(f"\n{trial.table(found)}\n")
    assert tables(version_before) <= tables(ROOT)
    assert lives == [2] * 4
    assert found.messages > 20


def tables(tree: Path) -> set[str]:
    return {one.name for one in (tree / MIGRATIONS).glob("*.sql")}
