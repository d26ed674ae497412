"""What a conversation works on is shown as it is, and changed by nothing but commands."""

from __future__ import annotations

import re
from html import unescape

import pytest
from web_bus_rig import TAPE
from web_rig import open_web

HOSTILE = "<script>alert(1)</script> & \"more'"

NOTES = (
    "/problem new Taxes",
    "/problem note must keep receipts",
    "/problem note must-not call the office",
    "/problem note ask which year?",
    "/problem note assume the year is 2025",
    "/problem note decide file online because it is faster",
    "/problem note draft letter Dear Sir,",
)


@pytest.fixture
async def rig():
    async with open_web() as opened:
        yield opened


async def test_every_problem_is_listed_with_its_state_and_the_one_worked_on(rig):
    await rig.talk(TAPE, "Hello there.", *NOTES, "/problem new Trip", "/problem done 2")
    found = await rig.get("/problems", tape=TAPE)
    assert found["active"] == "general"
    assert [(one["id"], one["state"]) for one in found["problems"]] == [
        ("general", "active"),
        ("p1", "paused"),
        ("p2", "completed"),
    ]
    taxes = found["problems"][1]
    assert taxes["questions"] == 1
    assert "must: keep receipts" in taxes["summary"]
    assert taxes["since"] is not None
    assert found["problems"][0]["since"] is None


async def test_the_working_set_tells_all_that_is_noted(rig):
    await rig.talk(TAPE, *NOTES)
    found = await rig.get("/working-set", tape=TAPE, problem="p1")
    assert found["must"] == ["keep receipts"]
    assert found["must_not"] == ["call the office"]
    assert found["questions"] == ["which year?"]
    assert found["decisions"] == [{"text": "file online", "why": "it is faster"}]
    assert found["drafts"] == [{"name": "letter", "text": "Dear Sir,"}]
    assert [(one["text"], one["standing"]) for one in found["assumptions"]] == [
        ("the year is 2025", "noted")
    ]
    assert found["expires"] > found["created"]
    other = await rig.get("/working-set", tape=TAPE)
    assert (other["problem"], other["exists"], other["must"]) == ("general", False, [])


async def test_the_page_gives_commands_and_names_what_is_worked_on(rig):
    await rig.talk(TAPE, *NOTES, "/problem switch general")
    html = await rig.page("/problems", tape=TAPE)
    assert len(re.findall("<h1", html)) == 1
    assert 'data-command="/problem switch p1"' in html
    assert 'data-command="/problem done p1"' in html
    assert 'data-command="/problem switch general"' not in html
    assert 'data-command="/problem done general"' not in html
    assert html.count('class="card stack current"') == 1
    assert 'id="general"' in html.partition('class="card stack current"')[2][:60]


@pytest.mark.parametrize(
    ("tape", "problem", "status"),
    [
        ("telegram:999", "general", 404),
        (TAPE, "p77", 404),
        ("person:telegram:7", "general", 422),
        ("workspace:shared", "general", 422),
        ("", "general", 422),
        (TAPE, "p" * 65, 422),
    ],
)
async def test_what_is_not_there_is_refused_in_words(rig, tape, problem, status):
    await rig.talk(TAPE, "Hello.", "/reference set deadline Friday")
    answer = await rig.client.get("/api/v1/working-set", params={"tape": tape, "problem": problem})
    assert answer.status_code == status
    assert len(answer.json()["detail"]) > 10


async def test_each_button_takes_away_the_note_that_it_stands_by_and_an_old_page_no_other(rig):
    await rig.talk(TAPE, *NOTES, f"/problem note ask {HOSTILE} {'and more ' * 9}?")
    shown = await rig.page("/problems", tape=TAPE)
    drops = [
        unescape(one) for one in re.findall(r'data-command="(/problem note drop [^"]+)"', shown)
    ]
    assert len(drops) == 7
    for one in reversed(drops):
        (answer,) = await rig.talk(TAPE, one)
        assert answer.startswith("Left for")
    left = await rig.get("/working-set", tape=TAPE, problem="p1")
    assert not any(left[kind] for kind in ("must", "must_not", "questions", "decisions", "drafts"))
    await rig.talk(TAPE, "/problem new Trip", "/problem note ask which hotel?")
    (answer,) = await rig.talk(TAPE, "/problem note drop ask 1 which year?")
    assert "another one by now" in answer
