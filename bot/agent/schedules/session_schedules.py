"""Set and change one conversation's schedules.

Each change writes the due tape first (see ``due_tape``) and returns the entry for the conversation's
tape, which the caller appends together with its reply or result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from zoneinfo import ZoneInfo

from bot.agent.schedules.due_tape import write_due
from bot.agent.schedules.times.reading import SpokenTime, Unread, read_time
from bot.agent.schedules.times.words import EXAMPLES
from bot.agent.schedules.times.zones import named_zones
from bot.core.errors import ScheduleRefused
from bot.core.i18n import _, current_language, format_list, ngettext
from bot.core.patterns import LazyPattern
from bot.core.recurrence import Cron, Once, Rule, moment_of, next_occurrence
from bot.memory.gate.secret_detection import detect_secret
from bot.memory.records.schedules import (
    MOST_SCHEDULES,
    QUIET_HOURS_SET,
    Author,
    Ending,
    Kind,
    Schedule,
    find_zone,
    read_quiet_hours,
)
from bot.memory.session.state.session_fold import SessionFold
from bot.tape.entries import TapeEntry, event
from bot.tape.service import TapeService

LONGEST_TEXT = 2_000
"""The most characters of a schedule's text."""

_SHORTEST_TASK_INTERVAL = timedelta(minutes=15)
_ISO = LazyPattern(r"\d{4}-\d\d-\d\dT\d")
_CRON = LazyPattern(r"(?:[\d*][\w*/,#?-]*\s+){3}[\w*][\w*/,#?-]*\s+[\w*][\w*/,#?-]*", re.ASCII)
_QUIET = LazyPattern(r"(\d{1,2})(?::(\d\d))? ?(?:-|–|to) ?(\d{1,2})(?::(\d\d))?")
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "`": "`", "«": "»", "「": "」"}


class NoTimeFound(ScheduleRefused):
    """Nothing in a text is a time."""


@dataclass(frozen=True, slots=True)
class SessionSchedules:
    """Sets and changes the schedules of one conversation.

    Args:
        tape: The conversation's tape.
        fold: The conversation's state.
        now: Returns the current time.
        program_zone: Name of the program's time zone.
    """

    tape: TapeService
    fold: SessionFold
    now: Callable[[], datetime]
    program_zone: str

    @property
    def zone_name(self) -> str:
        """Name of the conversation's time zone."""
        return self.fold.schedules.zone_name or self.program_zone

    @property
    def zone(self) -> ZoneInfo:
        """The conversation's time zone."""
        return find_zone(self.zone_name) or ZoneInfo("UTC")

    async def create(
        self,
        text: str,
        rule: Rule,
        *,
        key: str,
        kind: Kind,
        author: Author,
        private: bool,
        asked_at: datetime,
        own: Sequence[str],
        zone: str = "",
    ) -> Schedule:
        """Create a schedule; the caller appends its ``definition``.

        Raises:
            ScheduleRefused: The text or the time cannot be used, or there are too many schedules.
            TapeWriteError: The storage failed.
        """
        schedules = self.fold.schedules
        if len(schedules.live) >= MOST_SCHEDULES:
            raise ScheduleRefused(
                ngettext(
                    "{n} schedule is set here, which is the maximum; delete some first",
                    "{n} schedules are set here, which is the maximum; delete some first",
                    MOST_SCHEDULES,
                )
            )
        rule = _whole_seconds(rule)
        where = find_zone(zone) or self.zone
        upcoming = next_occurrence(rule, asked_at, where)
        if upcoming is None:
            raise ScheduleRefused(_("that time is past"))
        _check_interval(rule, kind, upcoming, where)
        made = Schedule(
            id=sha256(key.encode()).hexdigest()[:12],
            number=schedules.take_number(),
            kind=kind,
            text=_checked(text),
            rule=rule,
            zone_name=zone or self.zone_name,
            next=upcoming,
            author=author,
            private=private,
            created=asked_at,
            problem=self.fold.problem,
            own=tuple(own),
        )
        await self._write_due(made)
        return made

    async def change(
        self,
        schedule: Schedule,
        *,
        rule: Rule | None = None,
        text: str | None = None,
        zone: str = "",
        own: Sequence[str] = (),
    ) -> Schedule:
        """Give a schedule another time, or another text with what of it is a person's own words.

        The caller appends its ``change``.

        Raises:
            ScheduleRefused: The text or the time cannot be used.
            TapeWriteError: The storage failed.
        """
        changed = (
            schedule if text is None else replace(schedule, text=_checked(text), own=tuple(own))
        )
        if rule is not None:
            rule = _whole_seconds(rule)
            name = zone or self.zone_name
            changed = replace(changed, rule=rule, zone_name=name, paused=False, held=None)
        if rule is not None or schedule.ended is not None:
            changed = replace(changed, next=self._upcoming(changed), ended=None)
            if changed.next is not None:
                _check_interval(changed.rule, changed.kind, changed.next, changed.zone)
        await self._write_due(changed)
        return changed

    async def pause(self, schedule: Schedule) -> Schedule:
        """Pause a schedule; the caller appends its ``change``."""
        paused = replace(schedule, paused=True, next=None, held=None)
        await self._write_due(paused)
        return paused

    async def resume(self, schedule: Schedule) -> Schedule:
        """Resume a paused schedule; the caller appends its ``change``.

        Raises:
            ScheduleRefused: Its time has passed meanwhile.
        """
        resumed = replace(schedule, paused=False, next=self._upcoming(schedule))
        await self._write_due(resumed)
        return resumed

    async def snooze(self, schedule: Schedule, delay: timedelta) -> Schedule:
        """Let a schedule come again after a while; the caller appends its ``change``.

        A recurring one goes on with its rule after that.
        """
        moment = _whole(self.now() + delay)
        rule = schedule.rule if schedule.recurs else Once(moment)
        later = replace(schedule, rule=rule, next=moment, paused=False, held=None, ended=None)
        await self._write_due(later)
        return later

    async def end(self, schedule: Schedule, why: Ending) -> TapeEntry:
        """End a schedule; the caller appends the event."""
        await self._write_due(replace(schedule, next=None))
        return schedule.end(why)

    def set_quiet_hours(self, text: str) -> tuple[str, TapeEntry]:
        """Return what to say of quiet hours given as ``22:00-07:00`` or ``off``, and the event.

        Raises:
            ScheduleRefused: They are neither.
        """
        if text.strip().lower() == "off":
            return _("There are no quiet hours now."), event(QUIET_HOURS_SET)
        found = _QUIET.fullmatch(text.strip())
        pairs = [(found[1], found[2]), (found[3], found[4])] if found is not None else []
        ends = [f"{int(hour):02}:{minute or '00'}" for hour, minute in pairs]
        quiet = read_quiet_hours(*ends) if ends else None
        if quiet is None:
            raise ScheduleRefused(_("quiet hours are written as `22:00-07:00`, or `off`"))
        told = _(
            "Quiet hours are {hours} ({zone}). In them I send only reminders that are set once, for "
            "exactly that time. Everything else comes when they end.",
            hours=quiet.text,
            zone=self.zone_name,
        )
        return told, event(QUIET_HOURS_SET, {"from": ends[0], "to": ends[1]})

    def read_when(self, text: str, asked_at: datetime) -> SpokenTime:
        """Read a time at the start or the end of a text, or one in quotes at its start.

        Raises:
            NoTimeFound: There is no time in it.
            ScheduleRefused: It is not sure which, it is past, or there is no such day.
            InvalidRecurrence: The cron expression is wrong.
        """
        when, rest = _quoted_start(text)
        zone = next(named_zones(rest), None) if when else None
        if zone is not None and not zone.start:
            when, rest = f"{when} {rest[: zone.end]}", rest[zone.end :].strip()
        if when:
            found = _read_alone(when, asked_at, self.zone)
            if isinstance(found, SpokenTime):
                return replace(found, rest=rest)
        return _or_refused(read_time(text, asked_at, self.zone))

    def _upcoming(self, schedule: Schedule) -> datetime:
        upcoming = next_occurrence(schedule.rule, self.now(), schedule.zone)
        if upcoming is None:
            raise ScheduleRefused(_("its time is past; give it another one"))
        return upcoming

    async def _write_due(self, schedule: Schedule) -> None:
        await write_due(
            self.tape.store, self.tape.name, schedule.id, schedule.next, at=self.fold.version
        )


def read_rule(when: str, asked_at: datetime, zone: ZoneInfo) -> SpokenTime:
    """Read a time that stands alone: as ISO 8601, as a cron expression or in words.

    Raises:
        ScheduleRefused: It is none of them.
        InvalidRecurrence: The cron expression is wrong.
    """
    return _or_refused(_read_alone(when.strip().strip("\"'"), asked_at, zone))


def _read_alone(when: str, asked_at: datetime, zone: ZoneInfo) -> SpokenTime | Unread:
    if _ISO.match(when) and (moment := _read_iso(when, zone)) is not None:
        return SpokenTime(Once(moment))
    named = next((one for one in named_zones(when) if one.end == len(when)), None)
    cron = when if named is None else when[: named.start]
    if _CRON.fullmatch(cron) and (named is None or named.name):
        return SpokenTime(Cron(cron), zone="" if named is None else named.name)
    found = read_time(when, asked_at, zone)
    return Unread("unclear", when) if isinstance(found, SpokenTime) and found.rest else found


def _or_refused(found: SpokenTime | Unread) -> SpokenTime:
    if isinstance(found, SpokenTime):
        return found
    words = f"`{found.words[:80].replace('`', '')}`"
    if found.why == "past":
        raise ScheduleRefused(_("{time} is past", time=words))
    if found.why == "no_day":
        raise ScheduleRefused(_("there is no such day: {time}", time=words))
    if found.why == "zone":
        examples = "`17:00 UTC`, `17:00 Europe/Berlin`"
        raise ScheduleRefused(
            _(
                "I am not sure which time zone {name} is; write for example {examples}",
                name=words,
                examples=examples,
            )
        )
    *shown, dated = (f"`{one}`" for one in EXAMPLES[current_language()])
    if found.why == "two_days":
        raise ScheduleRefused(
            _("{time} may be two days; name the month, as in {example}", time=words, example=dated)
        )
    examples = format_list(shown, "or")
    if found.why == "none":
        raise NoTimeFound(
            _(
                "I find no time in it; write for example {examples}, or a cron expression in quotes",
                examples=examples,
            )
        )
    raise ScheduleRefused(
        _(
            "I am not sure when {time} is; write for example {examples}, and the time in quotes if the text names another one",
            time=words,
            examples=examples,
        )
    )


def _read_iso(text: str, zone: ZoneInfo) -> datetime | None:
    """Return the moment of an ISO 8601 time, by the zone's wall time if it names no offset."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment_of(moment, zone) if moment.tzinfo is None else moment.astimezone(UTC)


def _checked(text: str) -> str:
    text = text.strip()
    if not text:
        raise ScheduleRefused(_("it has no text: say what for"))
    if len(text) > LONGEST_TEXT:
        raise ScheduleRefused(
            ngettext(
                "its text is longer than {n} character",
                "its text is longer than {n} characters",
                LONGEST_TEXT,
            )
        )
    if (secret := detect_secret(text)) is not None:
        raise ScheduleRefused(_("its text looks like {secret}, which I do not keep", secret=secret))
    return text


def _check_interval(rule: Rule, kind: Kind, first: datetime, zone: ZoneInfo) -> None:
    """Refuse a task that would call the model all the time."""
    if kind == "reminder" or isinstance(rule, Once):
        return
    moment = first
    for _step in range(8):
        later = next_occurrence(rule, moment, zone)
        if later is None:
            return
        if later - moment < _SHORTEST_TASK_INTERVAL:
            raise ScheduleRefused(_("a task calls the model each time: at most every 15 minutes"))
        moment = later


def _quoted_start(text: str) -> tuple[str, str]:
    """Return the quoted text at the start of a text, and the rest; the first is empty if there is none."""
    text = text.strip()
    closing = _QUOTES.get(text[:1])
    end = text.find(closing, 1) if closing is not None else -1
    return ("", text) if end < 0 else (text[1:end].strip(), text[end + 1 :].strip())


def _whole_seconds(rule: Rule) -> Rule:
    if isinstance(rule, Once):
        return Once(_whole(rule.at))
    return rule if isinstance(rule, Cron) else replace(rule, start=_whole(rule.start))


def _whole(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)
