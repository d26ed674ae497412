"""Checks of ``tapebot doctor`` on tape stores other than files in the home folder."""

from __future__ import annotations

from importlib.metadata import entry_points

import anyio

from bot.cli.check_result import CheckResult
from bot.core.errors import TapebotError
from bot.core.i18n import _, ngettext
from bot.runtime.settings import Settings

_PATIENCE = 15.0
"""Seconds within which a store must answer."""


async def check_tape_store(settings: Settings, *, ask: bool) -> CheckResult:
    """Check a tape store that is not ``file``."""
    from bot.runtime.app.tape_stores import GROUP, build_tape_store

    name = settings.tape_store
    remote = name.startswith(("http://", "https://"))
    if name == "memory":
        remedy = _("Set TAPEBOT_TAPE_STORE=file to keep them.")
        return CheckResult("tapes", "warn", _("in memory: they are lost when tapebot ends"), remedy)
    where = (
        _("on the tape server {name}", name=name)
        if remote
        else _("in the installed store {name}", name=name)
    )
    if not ask and not remote and name in {point.name for point in entry_points(group=GROUP)}:
        return CheckResult(
            "tapes", "ok", _("{where} (`doctor --probe` checks whether it answers)", where=where)
        )
    try:
        store = build_tape_store(settings, read_only=True)
    except TapebotError as error:
        return CheckResult("tapes", "bad", str(error), _("Correct it."))
    try:
        if not ask:
            return CheckResult(
                "tapes",
                "ok",
                _("{where} (`doctor --probe` checks whether it answers)", where=where),
            )
        with anyio.fail_after(_PATIENCE):
            seen = len(await store.list_tapes())
    except TimeoutError:
        text = _(
            "{where}: no answer within {seconds} seconds", where=where, seconds=f"{_PATIENCE:g}"
        )
        return CheckResult(
            "tapes", "bad", text, _("Check that it runs and can be reached from here.")
        )
    except TapebotError as error:
        return CheckResult(
            "tapes", "bad", f"{where}: {error}", _("Fix it; tapes are only kept there.")
        )
    finally:
        await store.close()
    return CheckResult(
        "tapes",
        "ok",
        ngettext(
            "{where}: it answers, and lists {n} tape",
            "{where}: it answers, and lists {n} tapes",
            seen,
            where=where,
        ),
    )
