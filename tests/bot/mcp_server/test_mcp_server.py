"""The MCP server as a program sees it that uses the SDK's own client over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from mcp import MCPError
from memory_rig import BEN, BENS, GROUP, HOME, Memory, open_memory, refused, told

from bot.memory.session.linking.scope_registry import scope_entry
from bot.tape.entries import anchor, event, message

TOOLS = {"recall", "search", "why", "timeline", "propose"}


@pytest.fixture
async def memory(tmp_path) -> AsyncIterator[Memory]:
    async with open_memory(tmp_path) as on:
        yield on


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_sees_every_tool_and_calls_it(memory, mode):
    await memory.talk(HOME, "remember: my cat is called Tom.", "The cat sleeps.")
    client = await memory.connect(await memory.token(), mode)
    listed = {one.name: one for one in (await client.list_tools()).tools}
    assert listed.keys() == TOOLS
    for name, one in listed.items():
        assert one.annotations.read_only_hint is (name != "propose")
        assert one.annotations.destructive_hint is False
        assert one.output_schema["type"] == "object"
    assert "Tom" in await told(client, "recall", about="cat")
    # The client checks structured results against the schemas.
    found = await client.call_tool("search", {"query": "cat"})
    assert found.structured_content["passages"][0]["session"] == HOME
    assert "“my cat is called Tom.”" in await told(client, "why", fact="1")
    assert HOME in await told(client, "timeline")
    assert "The cat sleeps." in await told(client, "timeline", session=HOME)
    assert "Fact 2." in await told(client, "propose", text="The user likes tea.")


async def test_a_program_is_offered_what_its_token_allows(memory):
    reader = await memory.client("reader", rights=("read",))
    assert {one.name for one in (await reader.list_tools()).tools} == TOOLS - {"propose"}
    assert "has no tool" in await refused(reader, "propose", text="The user likes tea.")
    writer = await memory.client("writer", rights=("propose",))
    assert [one.name for one in (await writer.list_tools()).tools] == ["propose"]
    assert "has no tool" in await refused(writer, "recall")
    async with httpx.AsyncClient(base_url=memory.rig.url) as http:
        for given, status in (
            ({}, 401),
            ({"Authorization": "Bearer tapebot_x"}, 401),
            ({"Authorization": f"Bearer {await memory.token('chat', rights=('chat',))}"}, 403),
            (dict(memory.rig.client.headers), 401),
        ):
            assert (await http.post("/mcp", json={}, headers=given)).status_code == status


async def test_nothing_of_others_is_seen(memory):
    await memory.talk(HOME, "remember: my cat is called Tom.", "My safe is behind the mirror.")
    await memory.talk(BENS, "remember: my boat is called Undine.", sender=BEN)
    await memory.talk(GROUP, "remember: our party is in July.", private=False)
    ada, ben = await memory.client(), await memory.client("editor", "telegram.8")
    for client, own, others in (
        (ada, ("Tom", "mirror"), ("Undine", "July", "boat")),
        (ben, ("Undine",), ("Tom", "July", "mirror")),
    ):
        seen = await told(client, "recall") + await told(client, "timeline")
        for query in ("cat boat party safe called July mirror", "Tom Undine"):
            seen += await told(client, "recall", about=query) + await told(
                client, "search", query=query
            )
        assert all(word in seen for word in own)
        assert not [word for word in others if word in seen]
    for session in (HOME, GROUP, "person:console:local", "workspace:web", "nothing:there"):
        with_session = await refused(ben, "timeline", session=session)
        assert with_session.replace(session, "X") == (
            await refused(ben, "search", query="cat", session="nothing:at-all")
        ).replace("nothing:at-all", "X")
    assert "there is no fact 2" in await refused(ben, "why", fact="2")


async def test_what_is_shared_is_seen_without_its_source(memory):
    await memory.talk(HOME, "remember: the office is in Kiel.", "/memory share 1")
    ben = await memory.client("editor", "telegram.8")
    assert "[w1]" in await told(ben, "recall", about="office")
    why = await told(ben, "why", fact="w1")
    assert "not shown to this program" in why
    assert HOME not in why
    assert HOME in await told(await memory.client(), "why", fact="w1")


async def test_what_only_private_models_may_see_and_commands_are_never_shown(memory):
    store, tape = memory.rig.host.store, f"{HOME}:tax"
    await store.create_tape(tape)
    hidden = {"local_only": True, "problem": "p1"}
    await store.append_many(
        tape,
        [
            scope_entry("person:console:local"),
            message("user", "The taxes are due.", sender={"id": "local", "name": "Ada"}),
            message("user", "The bribe is in the vase.", sender={"id": "local"}, **hidden),
            event("memory.history", {"entry": "Ada spoke of a bribe."}, **hidden),
            anchor("session/new", {"summary": "A bribe in a vase."}, **hidden),
            event("command", {"name": "login", "arguments": ""}, sender={"id": "local"}),
            event("reply", {"text": "Your code: bribe-1234"}),
        ],
    )
    client = await memory.client()
    seen = await told(client, "timeline", session=tape)
    for query in ("bribe vase taxes", "bribe", '"bribe is in the vase"'):
        seen += await told(client, "search", query=query) + await told(
            client, "recall", about=query
        )
    assert "taxes" in seen
    assert "bribe" not in seen.replace("bribe-1234", "CODE").lower()
    assert "CODE" not in seen


async def test_a_program_with_sessions_of_its_own_reads_only_these(memory):
    await memory.talk(HOME, "remember: my cat is called Tom.")
    store = memory.rig.host.store
    for number, text in (("editor-1", "I parse cats."), ("editor2-1", "Of cats."), ("1", "Cats.")):
        tape = await store.create_tape(f"api:local:{number}")
        await store.append(tape, message("user", text, sender={"id": "local", "name": "editor"}))
    client = await memory.client(own=True)
    await told(client, "propose", text="The user likes tea.")
    listed = await client.call_tool("timeline", {})
    names = {one["session"] for one in listed.structured_content["sessions"]}
    assert names == {"api:local:editor-1", "mcp:local:editor"}
    assert "I parse cats." in await told(client, "search", query="cats")
    assert "Tom" not in await told(client, "search", query="cat called")
    assert "Tom" in await told(client, "recall", about="cat")
    assert "not shown to this program" in await told(client, "why", fact="1")
    assert "no session" in await refused(client, "timeline", session=HOME)


async def test_a_token_ends_within_a_conversation(memory):
    client = await memory.client()
    await told(client, "recall")
    await memory.rig.web.logins.login_store.end_token("local", "editor")
    with pytest.raises(MCPError):
        await client.call_tool("recall", {})


HOSTILE = (
    ("search", {}),
    ("search", {"query": "x" * 401}),
    ("search", {"query": "cat", "limit": 10_000}),
    ("search", {"query": ["cat"]}),
    ("search", {"query": "cat", "session": "../../etc/passwd"}),
    ("recall", {"about": {"$ne": 1}}),
    ("why", {"fact": "1; DROP TABLE"}),
    ("why", {"fact": "999999999"}),
    ("timeline", {"session": HOME, "before": 2**70}),
    ("propose", {"text": " \u202e\x00 "}),
    ("propose", {"text": "x" * 501}),
    ("propose", {"text": "ok", "verdict": "approved"}),
    ("__class__", {}),
)


async def test_hostile_arguments_get_an_error_for_the_model(memory):
    client = await memory.client()
    for tool, arguments in HOSTILE:
        assert len(await refused(client, tool, **arguments)) < 600, (tool, arguments)
        assert "Nothing" in await told(client, "recall")
