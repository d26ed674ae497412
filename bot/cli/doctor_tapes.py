"""Checks of ``tapebot doctor`` on tape stores other than files in the home folder."""

from __future__ import annotations

from importlib.metadata import entry_points

import anyio

from bot.cli.check_result import CheckResult
from bot.core.errors import TapebotError
from bot.runtime.settings import Settings

_PATIENCE = 15.0
"""Seconds within which a store must answer."""


async def check_tape_store(settings: Settings, *, ask: bool) -> CheckResult:
    """Check a tape store that is not ``file``.

    Args:
        settings: The settings that name the store.
        ask: Whether to list its tapes, over the network if it is remote.
    """
    from bot.runtime.app.tape_stores import GROUP, build_tape_store

    name = settings.tape_store
    remote = name.startswith(("http://", "https://"))
    if name == "memory":
        remedy = "Set TAPEBOT_TAPE_STORE=file to keep them."
        return CheckResult("tapes", "warn", "in memory: they are lost when tapebot ends", remedy)
    where = f"on the tape server {name}" if remote else f"in the installed store {name}"
    if not ask and not remote and name in {point.name for point in entry_points(group=GROUP)}:
        return CheckResult("tapes", "ok", f"{where} (`doctor --probe` checks whether it answers)")
    try:
        store = build_tape_store(settings, read_only=True)
    except TapebotError as error:
        return CheckResult("tapes", "bad", str(error), "Correct it.")
    try:
        if not ask:
            return CheckResult(
                "tapes", "ok", f"{where} (`doctor --probe` checks whether it answers)"
            )
        with anyio.fail_after(_PATIENCE):
            seen = len(await store.list_tapes())
    except TimeoutError:
        text = f"{where}: no answer within {_PATIENCE:g} seconds"
        return CheckResult("tapes", "bad", text, "Check that it runs and can be reached from here.")
    except TapebotError as error:
        return CheckResult(
            "tapes", "bad", f"{where}: {error}", "Fix it; tapes are only kept there."
        )
    finally:
        await store.close()
    return CheckResult("tapes", "ok", f"{where}: it answers, and lists {seen} tapes")
