"""Shared values and beliefs are shown with all they were and rest on, and changed by nothing but commands."""

from __future__ import annotations

import re

import pytest
from web_bus_rig import TAPE, believes, open_bus, said
from web_rig import open_web

from bot.bus import Sender

HOSTILE = "<img src=x onerror=alert(1)> \"quoted\" 'too' & more"


@pytest.fixture
async def rig():
    async with open_web() as opened:
        yield opened


async def test_values_are_listed_goals_first_with_where_they_come_from(rig):
    await rig.talk(
        TAPE, "/reference set deadline Friday", "/reference set priorities thesis; family"
    )
    found = await rig.get("/reference", tape=TAPE)
    assert [one["key"] for one in found["values"]] == ["priorities", "deadline"]
    goals, deadline = found["values"]
    assert goals["value"] == ["thesis", "family"]
    assert goals["given"] == "thesis; family"
    assert (deadline["version"], deadline["by"]) == (1, "person")
    assert deadline["citation"].startswith("[deadline v1, set ")
    assert found["session"] == TAPE
    assert found["scope"].startswith("person:")


async def test_versions_tell_who_when_what_and_what_it_rests_on(rig):
    await rig.talk(TAPE, "/reference set deadline Friday the 13th", "/reference set deadline Monday",
                   "/reference rollback deadline 1", "/reference remove deadline")  # fmt: skip
    found = await rig.get("/reference/versions", tape=TAPE, key="deadline")
    fourth, third, second, first = found["versions"]
    assert [one["version"] for one in found["versions"]] == [4, 3, 2, 1]
    assert (fourth["state"], fourth["current"]) == ("removed", True)
    assert (third["restores"], third["value"], third["by"]) == (1, "Friday the 13th", "rollback")
    assert (second["rests"]["who"], second["rests"]["quote"]) == ("Ada", "set deadline Monday")
    assert second["reason"] == "approved"
    assert {one["name"] for one in second["signals"]} >= {"source_quality", "conflict_level"}
    assert [one["kind"] for one in first["changes"]] == ["added"]
    assert {one["kind"] for one in second["changes"]} == {"removed", "added"}
    place = re.fullmatch(r"/timeline\?tape=telegram%3A42&entry=(\d+)", second["rests"]["href"])
    (entry,) = await rig.store.read(TAPE, int(place[1]), int(place[1]))
    assert "Monday" in str(entry.payload)
    assert (await rig.get("/reference", tape=TAPE))["taken_away"] == ["deadline"]


async def test_the_pages_roll_back_button_does_so(rig):
    await rig.talk(TAPE, "/reference set deadline Friday", "/reference set deadline Monday")
    html = await rig.page("/reference", tape=TAPE, key="deadline")
    assert "<del>" in html
    assert "<ins>" in html
    command = re.search(r'data-session="([^"]+)" data-command="(/reference rollback [^"]+)"', html)
    await rig.talk(command[1], command[2])
    (now,) = (await rig.get("/reference", tape=TAPE))["values"]
    assert (now["value"], now["version"]) == ("Friday", 3)


async def test_everybodys_values_are_told_apart_and_can_be_taken_back(rig):
    await rig.talk(TAPE, "/reference set table one", "/reference share table")
    await rig.talk("telegram:77", "Hello.", sender=Sender("9", "Eve"), role="member")
    there = await rig.get("/reference", tape="telegram:77")
    assert [(one["key"], one["overridden"]) for one in there["everybodys"]] == [("table", False)]
    here = await rig.get("/reference", tape=TAPE)
    assert [(one["key"], one["overridden"]) for one in here["everybodys"]] == [("table", True)]
    versions = await rig.get("/reference/versions", tape="telegram:77", key="table")
    assert versions["scope"] == "workspace:shared"
    assert versions["session"] == ""
    html = await rig.page("/reference", tape="telegram:77")
    assert 'data-command="/reference unshare table"' in html
    assert 'data-command="/reference remove table"' not in html
    everybodys = await rig.get("/reference", tape="workspace:shared")
    assert [one["key"] for one in everybodys["values"]] == ["table"]


async def test_words_that_were_forgotten_are_on_no_page(rig):
    await rig.talk(TAPE, "/reference set deadline Swordfish", "/reference set deadline Monday")
    assert "Swordfish" in await rig.page("/reference", tape=TAPE, key="deadline")
    (asked,) = await rig.talk(TAPE, "/memory forget Swordfish")
    request = re.search(r"forget yes (\d+)", asked)
    await rig.talk(TAPE, f"/memory forget yes {request[1]}")
    html = await rig.page("/reference", tape=TAPE, key="deadline")
    assert "Swordfish" not in html
    found = await rig.get("/reference/versions", tape=TAPE, key="deadline")
    assert [one["state"] for one in found["versions"]] == ["there", "erased"]


async def test_why_a_belief_is_held_leads_to_a_persons_words(rig):
    await rig.talk(TAPE, "I walk when I am stuck.")
    bus = await open_bus(rig)
    first = await believes(rig, bus, "Walks help Ada.", await said(rig, "I walk when I am stuck."))
    second = await believes(rig, bus, "Ada thinks on foot.", first)
    why = await rig.get("/belief", tape=TAPE, name=second)
    assert why["belief"]["evidence"][0]["kind"] == "belief"
    (end,) = why["chain"]
    assert (end["who"], end["quote"], end["state"]) == ("Ada", "I walk when I am stuck.", "there")
    assert why["reason"] == "it is grounded"
    assert why["by"] == "assistant"
    html = await rig.page("/reference", tape=TAPE, belief=second)
    assert "I walk when I am stuck." in html
    assert end["href"].replace("&", "&amp;") in html
    assert f'data-command="/memory drop {second}"' in html


@pytest.mark.parametrize(
    ("path", "params", "status"),
    [
        ("/reference", {"tape": "telegram:999"}, 404),
        ("/reference/versions", {"tape": TAPE, "key": "nothing"}, 404),
        ("/reference/versions", {"tape": TAPE, "key": "k" * 65}, 422),
        ("/reference/versions", {"tape": TAPE, "key": "deadline", "limit": 1_000}, 422),
        ("/beliefs", {"tape": TAPE, "which": "secret"}, 422),
        ("/belief", {"tape": TAPE, "name": "p99"}, 404),
        ("/belief", {"tape": TAPE, "name": "../etc"}, 422),
    ],
)
async def test_an_address_that_names_nothing_is_refused_in_words(rig, path, params, status):
    await rig.talk(TAPE, "/reference set deadline Friday")
    answer = await rig.client.get(f"/api/v1{path}", params=params)
    assert answer.status_code == status
    assert len(answer.json()["detail"]) > 10
