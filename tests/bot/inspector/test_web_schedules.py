"""The site tells owners what is scheduled, when it comes next, and what was due."""

from __future__ import annotations

from datetime import UTC

from web_rig import open_web

from bot.memory.records.schedules import (
    SCHEDULE_CHANGED,
    SCHEDULE_ENDED,
    SCHEDULE_FIRED,
    SCHEDULE_SET,
)
from bot.tape.entries import event
from bot.transfer.markdown import MarkdownTranscript

DEFINED = {
    "schedule": "a1", "number": 1, "kind": "reminder", "text": "call <b>mom</b>",
    "rule": {"kind": "cron", "expression": "0 12 * * *"}, "zone": "Europe/Berlin",
    "next": "2026-02-11T11:00:00.000+00:00", "author": {"id": "7", "name": "Ada"},
    "private": True, "paused": False, "created": "2026-02-10T10:00:00.000+00:00",
}  # fmt: skip
FIRED = {
    "schedule": "a1", "number": 1, "instant": "2026-02-11T11:00:00.000+00:00", "status": "late",
    "next": "2026-02-12T11:00:00.000+00:00", "missed": 2, "turn": "turn-1",
}  # fmt: skip
EVENTS = [
    event(SCHEDULE_SET, DEFINED),
    event(SCHEDULE_FIRED, FIRED),
    event(SCHEDULE_SET, {**DEFINED, "schedule": "b2", "number": 2, "text": "walk"}),
    event(
        SCHEDULE_CHANGED, {**DEFINED, "schedule": "b2", "number": 2, "paused": True, "next": None}
    ),
    event(SCHEDULE_ENDED, {"schedule": "c3", "number": 3, "why": "cancelled"}),
]


async def test_an_owner_sees_what_is_set_what_comes_next_and_what_was_due(tmp_path):
    async with open_web(folder=tmp_path) as rig:
        await rig.talk("fake:1", ("hello", "hi"))
        await rig.store.append_many("fake:1", EVENTS)
        told = await rig.get("/schedules", tape="fake:1")
        first, second = told["schedules"]
        assert first["next"] == "2026-02-12T11:00:00.000+00:00"
        assert "every day at 12:00 (Europe/Berlin)" in first["when"]
        assert (second["paused"], second["next"]) == (True, None)
        [past] = told["history"]
        assert (past["status"], past["missed"], past["text"]) == ("late", 2, "call <b>mom</b>")
        page = await rig.page("/schedules", tape="fake:1")
        assert "call &lt;b&gt;mom&lt;/b&gt;" in page
        assert 'data-command="/schedules pause 1"' in page
        assert 'data-command="/schedules resume 2"' in page


async def test_the_timeline_and_an_export_tell_schedules_in_words(tmp_path):
    async with open_web(folder=tmp_path) as rig:
        await rig.talk("fake:1", ("hello", "hi"))
        await rig.store.append_many("fake:1", EVENTS)
        shown = await rig.page("/timeline", tape="fake:1")
        for words in ("Reminder 1 is set: call &lt;b&gt;mom&lt;/b&gt;, every day at 12:00",
                      "was due at 2026-02-11 11:00:00 UTC: late, for 2 missed",
                      "Schedule 3 is over: cancelled"):  # fmt: skip
            assert words in shown
        exported = MarkdownTranscript(UTC).block(EVENTS[0])
        assert exported.startswith("\n- Reminder 1 is set: call \\<b\\>mom")
