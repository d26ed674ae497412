"""A plain yes or no answers the question that a command asked."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from acting import lines_of, obeying, writing_tool
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.agent.commands.builtin import builtin_commands
from bot.agent.commands.link import link_commands
from bot.bus import Address, Answer, Inbound, Sender
from bot.llm.base import ModelRequest
from bot.testing.fake_channel import ADA
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, ScriptStep, text_reply
from tests.bot.agent.telling import GROUP, pressed, say
from tests.sampling import examples

BOB, EVE = Sender("9", "Bob"), Sender("66", "Eve")


@pytest.mark.parametrize(
    ("word", "told"),
    [("yes", "Memory is cleared."), ("sí", "Memory is cleared."), ("non", "zebras")],
)
async def test_a_plain_answer_to_memory_clear_does_what_its_button_does(tmp_path, word, told):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        await host.channel.ask("/memory add I like zebras")
        question = await host.channel.ask("/memory clear")
        yes, _no = host.channel.answers[-1].buttons
        assert f"say yes or send `{yes.command}`" in question
        assert question.count("/memory clear") == 1
        assert told in await host.channel.ask(word)


@pytest.mark.parametrize(
    ("chat", "sent", "links"),
    [
        pytest.param("1", 5, True, id="where it was asked"),
        pytest.param("1", -30, False, id="written before it was asked"),
        pytest.param("2", 5, False, id="in another chat"),
    ],
)
async def test_a_yes_links_only_where_and_after_the_link_was_asked_for(tmp_path, chat, sent, links):
    hosts: list[Host] = []

    async def tell(answer: Answer) -> None:
        await hosts[0].bus.send(answer)

    async def english(_: str) -> str:
        return "en"

    model = ScriptedModel(lambda _: text_reply("Shall I put milk on the list?"))
    commands = builtin_commands(link_commands(tell, english))
    async with session_host(tmp_path, model, commands=commands) as host:
        hosts.append(host)
        other = host.add_channel("other")
        code = re.search(r"`(/link \S+)`", await host.channel.ask("/link"))
        await host.channel.ask("We need milk.", chat=chat)
        host.clock.advance(60)
        claimed = await other.send(f"{code[1]} yes", sender=EVE)
        assert "Confirm it there" in await other.wait_for_answer(claimed)
        at = host.clock.now() + timedelta(seconds=sent)
        host.clock.advance(5)
        yes = Inbound(Address("fake", chat), "yes", ADA, "yes", at, private=True, role="owner")
        await host.bus.channel("fake").publish(yes)
        assert ("Linked with" in await host.channel.wait_for_answer(yes)) == links


class Group:
    """A group in which two owners talk to a model that writes what they ask for, if they say yes."""

    def __init__(self, host: Host, path: Path, paused: list[PausedStep]) -> None:
        self.host = host
        self._path = path
        self._paused = paused
        self._said = 0

    async def send(self, who: Sender, text: str, **more: object) -> Inbound:
        """Say something in the group."""
        self._said += 1
        told = {"private": False, "sender": who, "message_id": f"g{self._said}", **more}
        return await self.host.channel.send(text, **told)

    async def say(self, who: Sender, text: str, **more: object) -> str:
        """Say something to the bot; return its answer."""
        return await self.host.channel.wait_for_answer(await self.send(who, text, **more))

    async def chat(self, who: Sender, pending: int = 0) -> None:
        """Say something to the people there, while so many messages wait for an answer."""
        await self.send(who, "Nice weather.", asks=False)
        await self.host.wait_for_pending(pending)

    async def ask_while(self, other: Sender, who: Sender, text: str) -> None:
        """Ask the bot for something; another person chats before it answers."""
        sent = await self.send(who, f"slowly {text}")
        await self.host.wait_until(lambda: bool(self._paused))
        step = self._paused.pop()
        await step.entered.wait()
        await self.chat(other, 1)
        step.release.set()
        await self.host.channel.wait_for_answer(sent)

    async def press(self, who: Sender, button: str = "0123456789abcdef.3.0@:1") -> str:
        """Press a button as somebody who is no owner; by default one that nothing is known of."""
        return await self.say(who, button, pressed="out-1", role="member")

    @property
    def buttons(self) -> list[str]:
        """The buttons of the newest answer."""
        return [one.data for one in self.host.channel.answers[-1].buttons]

    @property
    def written(self) -> list[str]:
        """What was written."""
        return lines_of(self._path)


@asynccontextmanager
async def group(folder: Path) -> AsyncIterator[Group]:
    """Run a group."""
    paused: list[PausedStep] = []
    obeys = obeying()

    def script(request: ModelRequest) -> ScriptStep:
        last = request.messages[-1]
        if last["role"] != "user" or "slowly" not in str(last["content"]):
            return obeys(request)
        paused.append(PausedStep(obeys(request)))
        return paused[-1]

    path = folder / "acts.txt"
    async with session_host(folder, ScriptedModel(script), tools=[writing_tool(path)]) as host:
        yield Group(host, path, paused)


STEPS = st.lists(
    st.tuples(
        st.booleans(),
        st.sampled_from(
            ["ask", "ask", "ask while", "yes", "yes", "chat", "/help", "Hi!", "press", "dead"]
        ),
    ),
    min_size=3,
    max_size=12,
)


@settings(max_examples=examples(12))
@given(STEPS)
def test_however_two_talk_a_yes_decides_what_the_bot_asked_its_person_last(steps):
    anyio.run(talk, steps)


async def talk(steps: list[tuple[bool, str]]) -> None:
    """Let two people talk, and see after each step what was done."""
    waits: dict[Sender, str | None] = {ADA: None, BOB: None}
    asked: dict[Sender, str] = {}
    written: list[str] = []
    with TemporaryDirectory() as folder:
        async with group(Path(folder)) as here:
            for number, (is_ada, what) in enumerate(steps):
                who, other = (ADA, BOB) if is_ada else (BOB, ADA)
                if what in ("press", "dead"):
                    button = asked.get(other) if what == "press" else None
                    await here.press(who, *filter(None, [button]))
                    assert here.written == written, steps
                    continue
                if what == "ask":
                    await here.say(who, f"write w{number}")
                elif what == "ask while":
                    await here.ask_while(other, who, f"write w{number}")
                    waits[other] = None
                elif what == "chat":
                    await here.chat(who)
                else:
                    await here.say(who, what)
                written += filter(None, [waits[who] if what == "yes" else None])
                waits[who] = f"w{number}" if what.startswith("ask") else None
                if waits[who]:
                    asked[who] = here.buttons[0]
                assert here.written == written, steps


async def test_who_did_not_ask_for_an_erasure_ends_its_question_neither_by_yes_nor_by_no(tmp_path):
    async with session_host(tmp_path, ScriptedModel([text_reply("I see.")])) as host:
        bob, eve = ({**GROUP, "role": "member", "sender": who} for who in (BOB, EVE))
        await say(host, "I saw a zebra", **bob)
        await say(host, "/memory forget zebra", **bob)
        yes, no = (command for _, command in pressed(host))
        for command in (yes, no):
            assert "only the person who asked" in await say(host, command, **eve)
        assert await say(host, no, **bob) == "Nothing was erased."
