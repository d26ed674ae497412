"""Homes that were killed at each change of a file that a command makes: what every such proof begins with."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread
from nursery import nursery
from sampling import some

from bot.tape.stores.folder_verification import verify_folder

STEP = "step"
"""Id of the message that is the command: the platform repeats it where it has no word of it."""

_NUMBERS = itertools.count(1)
_HOST = Path(__file__).with_name("home_host.py")

Life = Callable[..., Awaitable[tuple[Path, list[dict[str, Any]]]]]


@contextmanager
def lives(module: str, ready: Path, command: Any, **more: Any) -> Iterator[Life]:
    """Give what lets a copy of a home live and die; it returns the copy and what was said."""
    with nursery(_HOST) as children:

        async def life(times: int = 0, part: float = 0.0, **also: Any) -> Any:
            folder = ready.with_name(f"life-{next(_NUMBERS)}")
            shutil.copytree(ready, folder)
            order = {"module": module, "more": more, "folder": folder, "command": command, **also}
            # In a thread: servers of the test answer meanwhile.
            lived = partial(children.life, times=times, part=part, **order)
            return folder, await to_thread.run_sync(lived)

        yield life


async def killed(
    module: str,
    ready: Path,
    command: Any,
    *,
    least: int = 4,
    most: int = 0,
    rounds: int = 1,
    parts: Sequence[float] = (0.0, 0.5, 1.0),
    **more: Any,
) -> AsyncIterator[tuple[Path, int]]:
    """Yield copies of a home and the change at which each was killed; first one that came to the end, and 0.

    Args:
        module: See ``lives``.
        ready: Likewise.
        command: Likewise.
        least: The command makes so many changes.
        most: How many kills, spread over them; else there is one at each.
        rounds: How often all of that.
        parts: How much may be done of a write.
        **more: See ``lives``.
    """
    chance = random.Random(str(command))
    with lives(module, ready, command, **more) as life:
        whole, [done, _] = await life()
        changes = [*range(1, done["changes"] + 1)]
        assert len(changes) >= least
        yield whole, 0
        spread = sorted(chance.sample(changes, min(most, len(changes))))
        for at in spread if most else some(changes * rounds):
            folder, _ = await life(at, chance.choice(parts))
            yield folder, at
            if (folder / "tapes").exists():
                assert not verify_folder(folder / "tapes", "").problems, at
            shutil.rmtree(folder)
