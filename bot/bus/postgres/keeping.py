"""Taking a session from wherever it is held."""

from __future__ import annotations

import anyio

from bot.bus.postgres.codec import key
from bot.bus.postgres.holds import Hold
from bot.bus.postgres.queries import Queries
from bot.core.database.wakeups import POLL, Wakeups
from bot.core.errors import SessionBusy
from bot.core.ids import new_id

_PATIENCE = 5.0
"""Seconds that a holder has to let go."""


async def taken(queries: Queries, wakeups: Wakeups, session: str, lease: float) -> Hold:
    """Hold a session without working it; a holder that has nothing to do lets go of it.

    Raises:
        SessionBusy: Its holder did not.
        BusError: The database refused, or is gone.
    """
    group, call, holder = key(session), new_id("keep"), None
    with anyio.move_on_after(_PATIENCE):
        while True:
            asked = anyio.current_time()
            queue, token, reads, holder = await queries.hold(group, call)
            if token is not None and reads is not None:
                return Hold(session, group, queue, token, reads, asked + lease)
            await wakeups.wait(wakeups.event(f"inbound:{queue}"), POLL)
    raise SessionBusy(
        f"the session is at work in {holder or 'another process'}: "
        "wait for its answer, or stop it with /stop, then ask again"
    )
