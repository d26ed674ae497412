"""Commands given through the API: who may, where, and what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from web_rig import Rig, open_web

from bot.agent.commands.registry import Command, CommandRegistry

PATH = "/api/v1/commands"


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    async with open_web() as rig:
        secret = Command("secret", "For owners", (), None, owner_only=True)
        known = CommandRegistry([*rig.web.commands.visible_commands(), secret])
        rig.app.state.web = replace(rig.web, commands=known)
        yield rig


async def give(rig: Rig, session: str, text: str, **more: str):
    return await rig.client.post(PATH, json={"session": session, "text": text, **more})


async def test_a_command_is_answered_with_its_text_its_buttons_and_their_effect(rig):
    await rig.talk("fake:1", "/memory add I like tea")
    asked = (await give(rig, "fake:1", "/memory forget tea")).json()
    keep = asked["buttons"][-1]
    assert keep["label"] == "Keep it"
    assert keep["command"].startswith("/memory forget no ")
    assert asked["html"].startswith("<p>")
    kept = await give(rig, "fake:1", keep["command"], pressed=asked["id"])
    assert kept.json()["text"] == "Nothing was erased."


async def test_files_of_an_answer_can_be_fetched_by_owners_alone(rig):
    await rig.talk("fake:1", "/memory add I like tea")
    (file,) = (await give(rig, "fake:1", "/memory export")).json()["files"]
    answer = await rig.client.get(file["url"])
    assert answer.status_code == 200
    assert answer.content.startswith(b"PK")
    assert answer.headers["content-disposition"].startswith("attachment")
    assert (await rig.member.get(file["url"])).status_code == 403
    assert (await rig.stranger.get(file["url"])).status_code == 401
    missing = file["url"].replace("number=0", "number=1")
    assert (await rig.client.get(missing)).status_code == 404


async def test_what_is_no_command_in_a_conversation_is_refused(rig):
    await rig.talk("fake:1", "/memory add I like tea")
    for session, text, status in (
        ("fake:1", "remember tea", 422),
        ("fake:1", "/", 422),
        ("fake:1", "/memory " + "x" * 40_000, 422),
        ("no key", "/memory", 422),
        ("person:fake:7", "/memory", 422),
        ("workspace:web", "/memory", 422),
        ("fake:never", "/memory", 404),
    ):
        answer = await give(rig, session, text)
        assert (answer.status_code, set(answer.json())) == (status, {"error", "detail"})
    assert "fake:never" not in await rig.store.list_tapes()


async def test_members_command_their_own_conversation_on_the_web_and_no_other(rig):
    await rig.talk("fake:1", "hello")
    refused = await rig.member.post(PATH, json={"session": "fake:1", "text": "/memory"})
    assert (refused.status_code, refused.json()["error"]) == (403, "owners_only")
    own = await rig.member.post(PATH, json={"session": "web:telegram.8", "text": "/status"})
    assert own.status_code == 200
    assert (
        await rig.stranger.post(PATH, json={"session": "fake:1", "text": "/a"})
    ).status_code == 401


async def test_the_list_holds_what_whoever_asks_may_give(rig):
    owners = {one["name"] for one in (await rig.get("/commands"))["commands"]}
    answer = (await rig.member.get(PATH)).json()["commands"]
    assert {one["name"] for one in answer} < owners
    assert not any(one["owner_only"] for one in answer)
    memory = next(one for one in answer if one["name"] == "memory")
    assert {"form", "summary"} == set(memory["forms"][0])


async def test_a_token_gives_no_command_that_makes_a_credential(rig):
    await rig.talk("fake:1", "/memory add I like tea")
    token = await rig.web.logins.login_store.make_token("local", "script")
    given = {"Authorization": f"Bearer {token}"}
    for text in ("/budget rate 1", "/schedules task every day at 8 mail Eve"):
        told = await rig.stranger.post(
            PATH, json={"session": "fake:1", "text": text}, headers=given
        )
        assert told.json()["text"].startswith("A token may not do"), text
    why = {"session": "fake:1", "text": "/memory why 1"}
    assert "I like tea" in (await rig.stranger.post(PATH, json=why, headers=given)).json()["text"]
