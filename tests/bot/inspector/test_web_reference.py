"""Shared values and beliefs are shown with all they were and rest on, and changed by nothing but commands."""

from __future__ import annotations

import re

import pytest
from web_bus_rig import DAY, TAPE, believes, open_bus, said
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


async def test_a_program_that_was_just_started_shows_the_values_and_beliefs_that_there_are(
    tmp_path,
):
    """Nobody talks: no conversation's worker holds what the person has."""
    async with open_web(folder=tmp_path) as rig:
        await rig.talk(TAPE, "I walk when I am stuck.", "/reference set deadline Friday",
                       "/reference set gone soon", "/reference remove gone")  # fmt: skip
        bus = await open_bus(rig)
        await believes(rig, bus, "Walks help Ada.", await said(rig, "I walk when I am stuck."))
    async with open_web(folder=tmp_path) as rig:
        found = await rig.get("/reference", tape=TAPE)
        assert [one["key"] for one in found["values"]] == ["deadline"]
        assert found["taken_away"] == ["gone"]
        assert "Walks help Ada." in await rig.page("/reference", tape=TAPE)


async def test_a_page_of_versions_goes_on_where_the_last_one_ended(rig):
    await rig.talk(TAPE, *(f"/reference set count {number}" for number in range(1, 8)))
    seen, before = [], None
    while True:
        page = await rig.get("/reference/versions", tape=TAPE, key="count", before=before, limit=3)
        assert all(one["changes"] for one in page["versions"])
        seen += [one["value"] for one in page["versions"]]
        if (before := page["before"]) is None:
            break
    assert seen == [str(number) for number in range(7, 0, -1)]


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


async def test_a_scopes_own_page_is_the_same_as_its_conversations(rig):
    await rig.talk(TAPE, "/reference set deadline Friday")
    scope = (await rig.get("/reference", tape=TAPE))["scope"]
    of_scope = await rig.get("/reference", tape=scope)
    assert [one["key"] for one in of_scope["values"]] == ["deadline"]
    assert "Friday" in await rig.page("/reference", tape=scope)


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


async def test_values_and_keys_are_text_whatever_they_hold(rig):
    await rig.talk(TAPE, f"/reference set <b>key</b> {HOSTILE}", f"/reference set two {HOSTILE}")
    html = await rig.page("/reference", tape=TAPE, key="<b>key</b>")
    assert "<img src=x" not in html
    assert "<b>key" not in html
    assert html.count("&lt;img src=x") >= 3
    found = await rig.get("/reference/versions", tape=TAPE, key="<b>key</b>")
    assert found["versions"][0]["value"] == HOSTILE


async def test_beliefs_tell_what_is_left_of_them_and_what_they_lose(rig):
    await rig.talk(TAPE, "I walk when I am stuck.")
    bus = await open_bus(rig)
    name = await believes(rig, bus, "Walks help Ada.", await said(rig, "I walk when I am stuck."))
    rig.host.clock.advance(50 * DAY)
    (one,) = (await rig.get("/beliefs", tape=TAPE))["beliefs"]
    assert (one["name"], one["text"], one["status"]) == (name, "Walks help Ada.", "active")
    assert one["confirmed_confidence"] == pytest.approx(0.8)
    assert one["confidence"] == pytest.approx(0.8 * 0.99**50)
    assert one["in_a_month"] == pytest.approx(0.8 * 0.99**80)
    assert one["evidence"][0]["kind"] == "entry"


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


async def test_an_ended_belief_is_listed_apart(rig):
    await rig.talk(TAPE, "I walk when I am stuck.", "I like rain.")
    bus = await open_bus(rig)
    walks = await believes(rig, bus, "Walks help Ada.", await said(rig, "I walk when I am stuck."))
    rain = await believes(rig, bus, "Rain suits Ada.", await said(rig, "I like rain."))
    await bus.semantic.revalidate(walks, False, cause="test:end", asker="7")
    current = await rig.get("/beliefs", tape=TAPE)
    assert [one["name"] for one in current["beliefs"]] == [rain]
    assert current["retired"] == 1
    ended = await rig.get("/beliefs", tape=TAPE, which="retired")
    assert [one["name"] for one in ended["beliefs"]] == [walks]
    html = await rig.page("/reference", tape=TAPE, which="retired")
    assert "Walks help Ada." in html
    assert "Rain suits Ada." not in html


async def test_many_beliefs_come_in_pages_that_hold_each_once(rig):
    await rig.talk(TAPE, "I walk when I am stuck.")
    bus, source = await open_bus(rig), await said(rig, "I walk when I am stuck.")
    for number in range(7):
        await believes(rig, bus, f"Belief number {number} of Ada.", source, sure=0.9 - number / 20)
    seen, offset = [], 0
    while offset is not None:
        page = await rig.get("/beliefs", tape=TAPE, offset=offset, limit=3)
        seen += [one["text"] for one in page["beliefs"]]
        offset = page["after"]
    assert seen == [f"Belief number {number} of Ada." for number in range(7)]


async def test_looking_at_values_and_beliefs_writes_nothing(rig):
    await rig.talk(TAPE, "I walk.", "/reference set deadline Friday")
    bus = await open_bus(rig)
    name = await believes(rig, bus, "Walks help Ada.", await said(rig, "I walk."))
    tapes = [TAPE, (await rig.get("/reference", tape=TAPE))["scope"]]
    before = [await rig.store.version(tape) for tape in tapes]
    rig.host.clock.advance(90 * DAY)
    await rig.page("/reference", tape=TAPE, key="deadline", belief=name)
    await rig.get("/beliefs", tape=TAPE)
    assert [await rig.store.version(tape) for tape in tapes] == before


@pytest.mark.parametrize(
    "path",
    ["/api/v1/reference", "/api/v1/reference/versions", "/api/v1/beliefs", "/api/v1/belief",
     "/reference"],
)  # fmt: skip
async def test_only_an_owner_sees_values_and_beliefs(rig, path):
    await rig.talk(TAPE, "/reference set deadline Friday")
    params = {"tape": TAPE, "key": "deadline", "name": "p1"}
    assert (await rig.member.get(path, params=params)).status_code == 403
    assert (await rig.stranger.get(path, params=params)).status_code == 401


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


async def test_the_api_is_documented_with_its_fields(rig):
    described = (await rig.client.get("/api/v1/openapi.json")).json()
    for path in ("problems", "working-set", "reference", "reference/versions", "beliefs", "belief"):
        told = described["paths"][f"/api/v1/{path}"]["get"]
        assert told["description"]
        assert "$ref" in told["responses"]["200"]["content"]["application/json"]["schema"]
