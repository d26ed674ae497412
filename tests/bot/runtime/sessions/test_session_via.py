"""Commands that an owner gives in somebody's chat from elsewhere: answered there, and the chat stays as it was."""

from __future__ import annotations

from bot.bus import Address, Sender
from bot.memory.records.conversation_entries import TURN_END
from bot.memory.records.event_names import COMMAND, REPLY
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SCOPE_EVENT
from bot.runtime.sessions.writer import ONLY_COMMANDS
from bot.tape.service import TapeService
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import ScriptedModel, text_reply

DESK = Address("web", "desk.1")
OWNER = Sender("local", "Grace")


async def give(host: Host, web: FakeChannel, text: str, **extra) -> str:
    """Give a command in Ada's chat from the desk; return the answer there."""
    return await web.wait_for_answer(await host.channel.send(text, sender=OWNER, via=DESK, **extra))


async def home(host: Host) -> str:
    tape = TapeService(host.store, "fake:1")
    return (await load_fold(tape)).home_scope


async def test_the_answer_goes_to_who_gave_the_command_and_not_into_the_chat(tmp_path):
    async with session_host(tmp_path, ScriptedModel([text_reply("ok")])) as host:
        web = host.add_channel("web")
        await host.channel.ask("hello")
        assert "I like tea" in await give(host, web, "/memory add I like tea")
        await host.wait_for_pending(0)
        [heard] = await host.events(COMMAND)
        assert heard.meta["via"] == DESK.session
        assert heard.meta["sender"] == {"id": "local", "name": "Grace", "role": "owner"}
        reply, end = (await host.tape())[-3:-1]
        assert (reply.name, end.name) == (REPLY, TURN_END)
        assert reply.data["via"] == end.data["via"] == DESK.session
    assert len(host.channel.answers) == 1
    assert [one.report_to for one in web.answers] == ["fake:1"]


async def test_a_private_chat_does_not_become_a_group_by_somebody_elses_command(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        web = host.add_channel("web")
        await host.channel.ask("remember: I like tea")
        assert await home(host) == "person:fake:7"
        settled = len(await host.events(SCOPE_EVENT))
        assert "I like tea" in await give(host, web, "/memory")
        await give(host, web, "/memory add I like cake")
        assert await home(host) == "person:fake:7"
        assert len(await host.events(SCOPE_EVENT)) == settled
        # It is the person's, and goes where they go.
        assert "cake" in await host.channel.ask("/memory", chat="2")


async def test_what_is_no_command_is_said_to_nobody(tmp_path):
    model = ScriptedModel()
    async with session_host(tmp_path, model) as host:
        web = host.add_channel("web")
        assert await give(host, web, "What did she say about zebras?") == ONLY_COMMANDS
        assert await give(host, web, "/memory", asks=False) == ONLY_COMMANDS
        await host.wait_for_pending(0)
        assert "zebras" not in str(await host.tape())
        assert not [one for one in await host.tape() if one.kind == "message"]
    assert not model.requests
    assert not host.channel.answers


async def test_a_command_from_elsewhere_is_erased_with_what_it_said(tmp_path):
    async with session_host(tmp_path, ScriptedModel([text_reply("ok")])) as host:
        web = host.add_channel("web")
        await host.channel.ask("hello")
        await give(host, web, "/memory add The user owns a numbat")
        await give(host, web, '/memory forget "numbat"')
        erase, *_ = web.answers[-1].buttons
        assert "numbat" not in await give(host, web, erase.command)
        await host.wait_for_pending(0)
        tape = await host.tape()
        assert "numbat" not in str(tape)
        # What is left of them still says that they were not given in the chat.
        assert {one.meta.get("via") for one in tape if one.name == COMMAND} == {DESK.session}
        assert "numbat" not in await host.channel.ask("/memory")


async def test_what_an_owner_adds_to_somebodys_memory_is_not_in_their_name(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        web = host.add_channel("web")
        await host.channel.ask("remember: I like tea")
        await give(host, web, "/memory add I live in Paris")
        await give(host, web, "/memory edit 1 I like coffee")
        scope = host.services.scopes.person("person:fake:7")
        await scope.open()
        origins = {one.text: (one.origin, one.status) for one in scope.fold.facts.values()}
        assert origins["I live in Paris"] == origins["I like coffee"] == ("member", "active")
        assert "an owner asked" in await host.channel.ask("/memory why 2")
        assert "you asked" in await give(host, web, "/memory why 2")
