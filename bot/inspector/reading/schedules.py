"""A conversation's schedules: what is set, when it comes next, and what was due."""

from __future__ import annotations

from pydantic import Field

from bot.agent.schedules.history import read_firings
from bot.agent.schedules.wording import when_text
from bot.core.clock import format_time
from bot.inspector.dependencies import WebContext
from bot.inspector.reading import ReadModel
from bot.memory.session.state.fold_loader import load_fold
from bot.tape.service import TapeService


class ScheduleModel(ReadModel):
    """A reminder or a task that has not ended."""

    id: str
    number: int = Field(description="As in `/schedules`.")
    kind: str = Field(description="`reminder` or `task`.")
    text: str
    when: str = Field(description="In words, with the zone.")
    zone: str = Field(description="IANA name.")
    next: str | None = Field(description="ISO 8601; null while it is paused.")
    paused: bool
    author: str = Field(description="Name of who set it.")
    entry: int = Field(description="Id of the entry that defines it.")


class PastOccurrenceModel(ReadModel):
    """An occurrence on the tape."""

    entry: int
    number: int
    text: str = Field(description="Empty if the schedule is long over.")
    instant: str = Field(description="The instant that it was for, ISO 8601.")
    status: str = Field(
        description="`sent`; `late`; `missed`, too old to be told; `held` for the end of quiet hours; "
        "`undelivered`, refused by the platform."
    )
    missed: int = Field(description="Earlier occurrences that it stands for.")


class SchedulesModel(ReadModel):
    """Schedules of a conversation, and what was due, newest first."""

    tape: str
    zone: str = Field(description="The conversation's time zone.")
    quiet: str = Field(description="Quiet hours; empty if there are none.")
    schedules: tuple[ScheduleModel, ...]
    history: tuple[PastOccurrenceModel, ...]


async def read_schedules(web: WebContext, tape: str) -> SchedulesModel:
    """Return the schedules of a tape.

    Raises:
        TapeNotFound: There is no such tape.
    """
    service = TapeService(web.store, tape)
    fold = await load_fold(service)
    schedules, now = fold.schedules, web.agent.clock.now()
    texts = {one.id: one.text for one in schedules}
    return SchedulesModel(
        tape=tape,
        zone=schedules.zone_name or web.agent.timezone_name,
        quiet="" if schedules.quiet is None else schedules.quiet.text,
        schedules=tuple(
            ScheduleModel(
                id=one.id,
                number=one.number,
                kind=one.kind,
                text=one.text,
                when=when_text(one, now, schedules.quiet),
                zone=one.zone_name,
                next=None if one.next is None else format_time(one.next),
                paused=one.paused,
                author=one.author.name,
                entry=one.entry,
            )
            for one in schedules.live.values()
        ),
        history=tuple(
            [
                PastOccurrenceModel(
                    entry=one.entry,
                    number=one.number,
                    text=texts.get(one.schedule, ""),
                    instant=format_time(one.instant),
                    status=one.status,
                    missed=one.missed,
                )
                async for one in read_firings(service)
            ]
        ),
    )
