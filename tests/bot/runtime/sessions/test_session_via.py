"""Commands that an owner gives in somebody's chat from elsewhere: answered there, and the chat stays as it was."""

from __future__ import annotations

import re

import pytest

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.link import link_commands
from bot.bus import Address, Answer, Sender
from bot.memory.records.conversation_entries import TURN_END
from bot.memory.records.event_names import (
    COMMAND,
    REPLY,
)
from bot.memory.session.scope.identities import LinkParty
from bot.memory.session.state.fold_loader import load_fold
from bot.memory.session.state.session_fold import SCOPE_EVENT
from bot.runtime.sessions.writer import ONLY_COMMANDS
from bot.tape.entries import SESSION_NEW
from bot.tape.service import TapeService
from bot.testing.fake_channel import FakeChannel
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, consolidation_reply, text_reply

DESK = Address("web", "desk.1")
OWNER = Sender("local", "Grace")


async def give(host: Host, web: FakeChannel, text: str, **extra) -> str:
    """Give a command in Ada's chat from the desk; return the answer there."""
    return await web.wait_for_answer(await host.channel.send(text, sender=OWNER, via=DESK, **extra))


async def unsent(answer: Answer) -> None:
    raise AssertionError(answer)


async def english(_: str) -> str:
    return "en"


async def join(host: Host, one: LinkParty, other: LinkParty) -> None:
    """Join two identities, as ``/link`` does it."""
    scopes = host.services.scopes
    await scopes.identity_linker.offer(one, "digest")
    await scopes.identity_linker.claim(other, "digest", "claim")
    move = await scopes.identity_linker.confirm(one.identity, None, "confirm")
    assert move is not None
    await scopes.apply_move(move)


async def home(host: Host) -> str:
    tape = TapeService(host.store, "fake:1")
    return (await load_fold(tape, max_messages=200, max_tokens=96_000)).home_scope


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
        await host.channel.ask("Remember that I like tea")
        assert await home(host) == "person:fake:7"
        settled = len(await host.events(SCOPE_EVENT))
        assert "I like tea" in await give(host, web, "/memory")
        await give(host, web, "/memory add I like cake")
        assert await home(host) == "person:fake:7"
        assert len(await host.events(SCOPE_EVENT)) == settled
        # It is the person's, and goes where they go.
        assert "cake" in await host.channel.ask("/memory", chat="2")


async def test_a_chat_that_nobody_spoke_in_yet_belongs_to_who_speaks_first(tmp_path):
    async with session_host(tmp_path, ScriptedModel([text_reply("ok")])) as host:
        web = host.add_channel("web")
        await give(host, web, "/memory add I like tea")
        assert await home(host) == ""
        await host.channel.ask("hello")
        assert await home(host) == "person:fake:7"
        assert "I like tea" in await host.channel.ask("/memory", chat="2")


async def test_a_joined_chat_stays_the_persons_after_a_command_from_elsewhere(tmp_path):
    """Whose chat it is says who spoke there last, and not who looked at it."""
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        web, other = host.add_channel("web"), host.add_channel("other")
        await other.ask("Remember that I like yaks")
        await host.channel.ask("Remember that I like zebras")
        await give(host, web, "/memory")
        await join(
            host, LinkParty("other:7", "Ada", "other:1"), LinkParty("fake:7", "Ada", "fake:1")
        )
        assert await home(host) == "person:other:7"
        assert "yaks" in await give(host, web, "/memory")


async def test_who_looks_at_a_chat_that_was_silent_for_long_is_not_taken_for_its_person(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        other = host.add_channel("other")
        await other.ask("Remember that I like yaks")
        await host.channel.ask("Remember that I like zebras")
        await join(
            host, LinkParty("other:7", "Ada", "other:1"), LinkParty("fake:7", "Ada", "fake:1")
        )
        tape = TapeService(host.store, "fake:1")
        version = await tape.version()
    async with session_host(tmp_path, ScriptedModel()) as host:
        tape = TapeService(host.store, "fake:1")
        for _ in range(600):
            await tape.append_event("noted", {})
        web = host.add_channel("web")
        assert "yaks" in await give(host, web, "/memory", message_id="later")
        assert await home(host) == "person:other:7"
        assert not await moved_after(host, version)


async def moved_after(host: Host, version: int) -> list[str]:
    return [str(one.data["home"]) for one in await host.events(SCOPE_EVENT) if one.id > version]


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


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("/memroy", "There is no command `/memroy`"),
        ("/memory forget 99", "There is no fact 99"),
        ("/memory edit 99 x", "There is no fact 99"),
        ("/link", "in the chat itself"),
        ("/unlink yes", "in the chat itself"),
    ],
)
async def test_whatever_is_wrong_with_a_command_is_said_to_who_gave_it(tmp_path, command, told):
    commands = builtin_commands(link_commands(unsent, english))
    async with session_host(tmp_path, ScriptedModel(), commands=commands) as host:
        web = host.add_channel("web")
        assert told in await give(host, web, command)
        await host.wait_for_pending(0)
    assert not host.channel.answers


async def test_an_answer_that_a_kill_cut_off_still_goes_to_who_gave_the_command(tmp_path):
    async with session_host(tmp_path, ScriptedModel()) as host:
        web = host.add_channel("web")
        web.reports = False
        asked = await host.channel.send("/memory clear", sender=OWNER, via=DESK, pressed="out-9")
        await web.wait_for_answer(asked)
    async with session_host(tmp_path, ScriptedModel()) as host:
        web = host.add_channel("web")
        await web.wait_for_answer(asked)
        await host.wait_for_pending(0)
        [again] = web.answers
        assert (again.address, again.report_to, again.reply_to) == (DESK, "fake:1", asked.id)
    assert not host.channel.answers


async def test_a_command_that_a_kill_came_before_is_run_once_and_answered_there(tmp_path):
    held = PausedStep(text_reply("ok"))
    async with session_host(tmp_path, ScriptedModel([held])) as host:
        host.add_channel("web")
        await host.channel.send("hello")
        await held.entered.wait()
        # It may not run beside a turn, and waits.
        asked = await host.channel.send("/new now", sender=OWNER, via=DESK)
        await host.wait_for_pending(2)
    async with session_host(tmp_path, ScriptedModel([text_reply("ok")])) as host:
        web = host.add_channel("web")
        assert await web.wait_for_answer(asked) == "New session started."
        await host.wait_for_pending(0)
        assert len(await host.events(SESSION_NEW)) == 1
    assert [one.text for one in host.channel.answers] == ["ok"]


async def test_new_from_elsewhere_is_answered_there_and_begins_anew(tmp_path):
    model = ScriptedModel(
        lambda _: text_reply("ok"), consolidation=[consolidation_reply("Ada said hello.")]
    )
    async with session_host(tmp_path, model) as host:
        web = host.add_channel("web")
        await host.channel.ask("hello")
        assert await give(host, web, "/new") == "New session started."
        await host.wait_for_pending(0)
        assert len(await host.events(SESSION_NEW)) == 1
        heard = (await host.events(COMMAND))[-1]
        assert (heard.data["name"], heard.meta["via"]) == ("new", DESK.session)
    assert [one.text for one in host.channel.answers] == ["ok"]


async def test_stop_from_elsewhere_ends_the_turn_in_the_chat_and_is_answered_there(tmp_path):
    held = PausedStep(text_reply("never"), partial="It was a dark and")
    async with session_host(tmp_path, ScriptedModel([held])) as host:
        web = host.add_channel("web")
        story = await host.channel.send("tell a story")
        await held.entered.wait()
        await host.channel.wait_until(lambda: bool(host.channel.partials))
        assert await give(host, web, "/stop") == "Stopped."
        # The person sees that it came to nothing, in the place of what they have read.
        told = await host.channel.wait_for_answer(story)
        assert told == "It was a dark and …\n\n_Stopped._"
        await host.wait_for_pending(0)
        stopped, command = await host.events(TURN_END)
        assert (stopped.data["status"], stopped.data["inbound"]) == ("stopped", [story.id])
        assert command.data["via"] == DESK.session
        assert await give(host, web, "/stop", message_id="again") == "Nothing is running."


async def test_a_turns_own_answer_stays_in_the_chat_while_a_command_is_given_elsewhere(tmp_path):
    held = PausedStep(text_reply("Once upon a time."))
    async with session_host(tmp_path, ScriptedModel([held])) as host:
        web = host.add_channel("web")
        story = await host.channel.send("tell a story")
        await held.entered.wait()
        await give(host, web, "/status")
        held.release.set()
        assert await host.channel.wait_for_answer(story) == "Once upon a time."
        await host.wait_for_pending(0)
    assert [one.reply_to for one in host.channel.answers] == [story.id]


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


async def test_a_way_that_is_no_address_keeps_no_session_from_opening(tmp_path):
    """Whatever is on a tape, such as one that was brought from elsewhere: it opens, and goes on."""
    async with session_host(tmp_path, ScriptedModel()) as host:
        web = host.add_channel("web")
        web.reports = False
        await web.wait_for_answer(await host.channel.send("/memory", sender=OWNER, via=DESK))
    for path in tmp_path.joinpath("tapes").glob("*.jsonl"):
        bare = re.sub(rb',"chain":"[^"]+"', b"", path.read_bytes())
        path.write_bytes(bare.replace(b"web:desk.1", b"no address"))
    async with session_host(tmp_path, ScriptedModel([text_reply("ok")])) as host:
        hello = await host.channel.send("hello", message_id="later")
        assert await host.channel.wait_for_answer(hello) == "ok"
        await host.wait_for_pending(0)


async def test_what_an_owner_adds_to_somebodys_memory_is_not_in_their_name(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        web = host.add_channel("web")
        await host.channel.ask("Remember that I like tea")
        await give(host, web, "/memory add I live in Paris")
        await give(host, web, "/memory edit 1 I like coffee")
        scope = host.services.scopes.person("person:fake:7")
        await scope.open()
        origins = {one.text: (one.origin, one.status) for one in scope.fold.facts.values()}
        assert origins["I live in Paris"] == origins["I like coffee"] == ("member", "active")
        assert "an owner asked" in await host.channel.ask("/memory why 2")
        assert "you asked" in await give(host, web, "/memory why 2")


async def test_what_people_add_to_their_own_memory_from_the_site_is_their_own(tmp_path):
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as host:
        web = host.add_channel("web")
        await host.channel.ask("Remember that I like tea")
        grace = LinkParty("web:local", "Grace", "web:local")
        await join(host, LinkParty("fake:7", "Ada", "fake:1"), grace)
        await give(host, web, "/memory add I live in Paris")
        scope = host.services.scopes.person("person:fake:7")
        await scope.open()
        assert [one.origin for one in scope.fold.facts.values()] == ["person", "person"]
        assert "you asked" in await host.channel.ask("/memory why 2")
