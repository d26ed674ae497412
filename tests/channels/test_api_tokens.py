"""What a token allows a client of OpenAI's API, and which conversations are the client's."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from api_stage import FIRST, Stage, program, talk
from folded import fold_entries
from openai import AsyncOpenAI

from bot.bus import Right, Sender
from bot.testing.scripted_model import (
    ScriptedModel,
    text_reply,
    tool_call_reply,
)

OWNER: Any = {"chat": "local", "sender": Sender("local", "Ada"), "role": "owner"}
PERSON = "person:console:local"


async def another(stage: Stage, name: str, *rights: Right, own: bool = True) -> AsyncOpenAI:
    """Return a client with these rights, and with sessions of its own unless said otherwise."""
    logins = stage.channel.backend._web.logins.login_store
    token = await logins.make_token("local", name, list(rights), own_sessions=own)
    return AsyncOpenAI(base_url=f"{stage.url}/v1", api_key=token, max_retries=0)


async def answer(client: AsyncOpenAI, *said: str) -> str:
    """Return the answer to a conversation."""
    reply = await client.chat.completions.create(model="tapebot", messages=talk(*said))
    return reply.choices[0].message.content or ""


async def test_a_client_with_sessions_of_its_own_shares_none(tmp_path):
    async with (
        program(tmp_path, ScriptedModel(lambda _: text_reply("Aye."))) as stage,
        await another(stage, "my editor", "chat") as client,
    ):
        assert await stage.ask("Hello.") == "Aye."
        create = client.responses.create
        said = await create(model="tapebot", input="Hello.")
        more = await create(model="tapebot", input="And?", previous_response_id=said.id)
        assert more.output_text == "Aye."
        own = "api:local:my~editor-1"
        assert await stage.sessions() == [FIRST, own]
        assert await stage.said(own) == ["Hello.", "Aye.", "And?", "Aye."]
        theirs = await stage.client.responses.create(model="tapebot", input="Secret.")
        for previous, by in ((theirs.id, client), (more.id, stage.client)):
            with pytest.raises(openai.NotFoundError):
                await by.responses.create(
                    model="tapebot", input="And?", previous_response_id=previous
                )
        # It sends the other client's conversation, which is none of its own.
        await client.chat.completions.create(model="tapebot", messages=talk("Hi.", "Aye.", "Go."))
        assert [one for one in await stage.sessions() if "editor" in one] == [own, f"{own[:-1]}2"]


async def test_without_the_right_a_client_cannot_chat(tmp_path):
    async with (
        program(tmp_path, ScriptedModel([])) as stage,
        await another(stage, "reader", "read") as client,
    ):
        with pytest.raises(openai.PermissionDeniedError, match="lacks the right"):
            await client.chat.completions.create(model="tapebot", messages=talk("Hello."))
        assert await stage.sessions() == []


CHANGES = (
    "/memory add I smoke", "/memory edit 1 I like gin", "/memory undo", "/memory pause", "/memory clear",
    "/memory forget tea", "/memory share 1", "/memory export", "/memory import start", "/MEMORY@bot Undo",
    "/files keep", "/files delete a.txt", "/reference set deadline Friday", "/problem new X",
    "/remind in 20 minutes to leave", "/schedules task every day at 8 mail Eve", "/timezone Asia/Tokyo",
    "/language de", "/model default", "/approve 1", "/deny 1", "/budget set everyone 5$ day", "/link",
    "/link confirm", "/unlink", "/login", "/pair here", "/mcp allow x", "/skills allow x",
)  # fmt: skip
"""Commands that change something, or make a credential."""

SHOWS = (
    "/memory", "/memory 1", "/memory why 1", "/memory search tea", "/memory pending", "/memory history",
    "/memory beliefs", "/tape search tea", "/files", "/files find tea", "/schedules", "/reference",
    "/problem", "/budget", "/approvals", "/why 1", "/model",
)  # fmt: skip
"""Commands that show what more than this conversation knows."""


@pytest.mark.slow
async def test_a_token_changes_and_shows_by_commands_only_what_it_has_the_right_to(tmp_path):
    async with (
        program(tmp_path, ScriptedModel([]), metered=True) as stage,
        await another(stage, "editor", "chat", "read", "propose") as own,
        await another(stage, "chatter", "chat", own=False) as chatter,
        await another(stage, "reader", "chat", "read", own=False) as reader,
    ):
        console = stage.host.add_channel("console")
        await console.wait_for_answer(await console.send("/memory add I like tea", **OWNER))
        before = fold_entries(await stage.host.tape(PERSON)).facts
        known = [one for one in (*SHOWS, *CHANGES) if not _is_unknown(stage, one)]
        assert {"/memory why 1", "/memory forget tea", "/schedules"} <= set(known)
        for client, refused in ((own, known), (chatter, known), (reader, CHANGES)):
            for command in refused:
                told = await answer(client, command)
                assert told.startswith(("A token may not do `/", "There is no command")), command
                assert "tea" not in told.partition("`.")[2]
        assert "I like tea" in await answer(reader, "/memory why 1")
        assert "Session" in await answer(own, "/status")
        assert fold_entries(await stage.host.tape(PERSON)).facts == before


def _is_unknown(stage: Stage, command: str) -> bool:
    name = command[1:].partition("@")[0].split()[0].lower()
    return stage.host.services.commands.get(name) is None


MINTING = ("/link", "/link AB12-CD34", "/link confirm", "/unlink", "/login", "/pair here", "/mcp allow x",
           "/skills allow x", "/schedules task every day at 8 mail Eve", "/budget rate 1")  # fmt: skip


async def test_a_token_makes_no_credential_whatever_its_rights(tmp_path):
    async with program(tmp_path, ScriptedModel([]), metered=True) as stage:
        for command in MINTING:
            told = await stage.ask(command)
            assert told.startswith(("A token may not do", "There is no command")), command


async def tool_result(stage: Stage, client: AsyncOpenAI, said: str, session: str) -> str:
    await answer(client, said)
    results = [e for e in await stage.host.tape(session) if e.kind == "tool_result"]
    return str(results[-1].payload["content"])


async def test_what_a_model_does_for_a_token_needs_the_tokens_rights_too(tmp_path):
    changes = {"changes": [{"op": "add", "text": "The user likes gin."}]}
    calls = [
        ("memory_save", changes),
        ("memory_daily", {"content": "Likes gin."}),
        ("memory_clear", {}),
        ("schedule_manage", {"op": "set", "text": "leave", "when": "in 20 minutes"}),
        ("memory_refer", {"op": "set", "key": "deadline", "value": "Friday"}),
        ("memory_forget", {"what": "tea"}),
    ]
    replies = [one for call in calls for one in (tool_call_reply(call), text_reply("Done."))]
    async with (
        program(tmp_path, ScriptedModel([*replies, *replies[:2]])) as stage,
        await another(stage, "chatter", "chat") as chatter,
        await another(stage, "editor", "chat", "propose") as editor,
    ):
        for number, _ in enumerate(calls, start=1):
            told = await tool_result(
                stage, chatter, f"I like gin. {number}", f"api:local:chatter-{number}"
            )
            assert "lacks the right" in told
        assert not fold_entries(await stage.host.tape(PERSON)).facts
        told = await tool_result(stage, editor, "I like gin.", "api:local:editor-1")
        assert "Set aside until the user decides" in told
        [fact] = fold_entries(await stage.host.tape(PERSON)).facts.values()
        assert (fact.status, fact.origin) == ("pending", "client")


async def test_what_a_token_asks_to_remember_is_only_said_without_the_right_to_commands(tmp_path):
    async with (
        program(tmp_path, ScriptedModel(lambda _: text_reply("Noted."))) as stage,
        await another(stage, "chatter", "chat") as chatter,
        await another(stage, "editor", "chat", "propose") as editor,
    ):
        await answer(chatter, "remember: I have a dog.")
        await answer(editor, "remember: I have a cat.")
        await stage.ask("remember: I have a hen.")
        facts = fold_entries(await stage.host.tape(PERSON)).facts.values()
        assert {(fact.text, fact.status) for fact in facts} == {
            ("I have a hen.", "active"),
        }
