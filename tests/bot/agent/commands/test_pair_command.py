"""``/pair`` and ``/start``, as an owner and a newcomer meet them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bot.agent.commands.builtin import START_COMMAND, builtin_commands
from bot.agent.commands.pair import pair_command
from bot.bus import AccessDecision, AccessRequest, Address, Answer, Inbound, Sender
from bot.bus.access.control import open_access_control
from bot.bus.access.messages import NEWCOMER
from bot.testing.host import session_host
from bot.testing.manual_clock import START_TIME as NOW
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel


@asynccontextmanager
async def hosted(folder, *, owners=("fake:1",), allow=()):
    """The program with a door, as the composition root joins them; owner in the chat 1."""
    clock = ManualClock()
    hosts = []

    async def tell(address: Address, text: str) -> None:
        await hosts[0].bus.send(Answer(address, f"told-{address.session}", text))

    async with open_access_control(
        folder, owners=owners, allow=allow, clock=clock, send_notice=tell
    ) as access_control:
        commands = builtin_commands([pair_command(access_control), START_COMMAND])
        async with session_host(folder, ScriptedModel(), clock=clock, commands=commands) as host:
            hosts.append(host)
            yield host, access_control


def access_request(user="9"):
    return AccessRequest(Address("fake", user), Sender(user, "Eve"), True, (user,), "hello")


async def code_of(access_control, user="9"):
    verdict = await access_control.authorize(access_request(user))
    assert verdict.reply is not None
    return verdict.reply.split("/pair ")[1].split()[0]


async def test_an_owner_lets_a_stranger_in_who_is_told_in_their_chat(tmp_path):
    async with hosted(tmp_path) as (host, access_control):
        code = await code_of(access_control)
        told = await host.channel.ask(f"/pair {code}")
        assert told == "`fake:9` `Eve` may use this bot now, and I told them."
        await host.channel.wait_until(
            lambda: any(a.address.chat_id == "9" for a in host.channel.answers)
        )
        assert NEWCOMER in [a.text for a in host.channel.answers if a.address.chat_id == "9"]
        assert await access_control.authorize(access_request()) == AccessDecision("member")


async def test_a_code_that_nobody_has_lets_nobody_in(tmp_path):
    async with hosted(tmp_path) as (host, access_control):
        assert "This code is not valid" in await host.channel.ask("/pair ABCD-2345")
        assert "`/pair remove ID`" in await host.channel.ask("/pair nothing")
        assert (await access_control.overview()).members == ()


async def test_the_list_names_everybody_and_who_waits(tmp_path):
    async with hosted(tmp_path, allow=("discord:5",)) as (host, access_control):
        await host.channel.ask(f"/pair {await code_of(access_control, '8')}")
        await access_control.allow_chat("fake:-100")
        await code_of(access_control)
        told = await host.channel.ask("/pair")
    assert told == (
        "**Owners**\n- `fake:1`, in the settings\n\n"
        f"**Members**\n- `fake:8` `Eve`, since {NOW:%Y-%m-%d}\n\n"
        f"**Chats where everyone may use the bot**\n- `fake:-100`, since {NOW:%Y-%m-%d}\n\n"
        "**Allowed by TAPEBOT_ALLOW**\n- `discord:5`\n\n"
        "**Access requests (ask the person for their code)**\n- `fake:9` `Eve`, asked just now"
    )


async def test_a_group_does_not_get_to_read_the_list(tmp_path):
    async with hosted(tmp_path, allow=("discord:5",)) as (host, _):
        told = await host.channel.wait_for_answer(await host.channel.send("/pair", private=False))
        assert "in private" in told
        assert "discord:5" not in told


async def test_here_lets_everybody_in_a_group_use_the_bot(tmp_path):
    async with hosted(tmp_path) as (host, access_control):
        sent = await host.channel.send("/pair here", chat="-100", topic="7", private=False)
        assert "`/pair remove fake:-100`" in await host.channel.wait_for_answer(sent)
        inside = replace(
            access_request(), private=False, address=Address("fake", "-100"), chat_ids=("-100",)
        )
        assert await access_control.authorize(inside) == AccessDecision("member")
        assert "takes" not in await host.channel.ask("/pair here", chat="9")
        assert len((await access_control.overview()).chats) == 1


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("fake:8", "may no longer use"),
        ("fake:77", "not on the list"),
        ("fake:1", "TAPEBOT_OWNERS"),
        ("discord:5", "TAPEBOT_ALLOW"),
        ("", "For example"),
        ("`x\ny`", "not on the list"),
    ],
)
async def test_removing_says_what_became_of_it(tmp_path, place, told):
    async with hosted(tmp_path, allow=("discord:5",)) as (host, access_control):
        await access_control.approve(await code_of(access_control, "8"))
        assert told in await host.channel.ask(f"/pair remove {place}")


async def test_the_last_owner_stays(tmp_path):
    async with hosted(tmp_path, owners=()) as (host, access_control):
        await access_control.authorize(replace(access_request(), text=access_control.claim_code))
        assert "last owner" in await host.channel.ask("/pair remove fake:9")
        assert await access_control.authorize(access_request()) == AccessDecision("owner")


async def test_a_member_may_not_pair(tmp_path):
    async with hosted(tmp_path) as (host, access_control):
        code = await code_of(access_control)
        member = Inbound(
            Address("fake", "8"), "m1", Sender("8", "Bob"), f"/pair {code}", NOW, role="member"
        )
        await host.bus.channel("fake").publish(member)
        assert "Only an owner" in await host.channel.wait_for_answer(member)
        assert (await access_control.overview()).members == ()
