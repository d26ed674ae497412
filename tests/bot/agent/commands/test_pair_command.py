"""``/pair`` and ``/start``, as an owner and a newcomer meet them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace

from bot.agent.commands.builtin import START_COMMAND, builtin_commands
from bot.agent.commands.pair import pair_command
from bot.bus import AccessDecision, AccessRequest, Address, Answer, Sender
from bot.bus.access.control import open_access_control
from bot.bus.access.messages import NEWCOMER
from bot.testing.host import session_host
from bot.testing.manual_clock import START_TIME as NOW
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel
from tests.bot.agent.telling import say, talk


@asynccontextmanager
async def hosted(folder, *, owners=("fake:1",)):
    """The program with a door, as the composition root joins them; owner in the chat 1."""
    clock, hosts = ManualClock(), []

    async def tell(address: Address, text: str) -> None:
        await hosts[0].bus.send(Answer(address, f"told-{address.session}", text))

    async with open_access_control(
        folder, owners=owners, allow=("discord:5",), clock=clock, send_notice=tell
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
        bob = {"sender": Sender("8", "Bob"), "chat": "8", "role": "member"}
        await talk(host, (f"/pair {code}", "Only an owner"), **bob)
        await talk(
            host,
            *(("/pair ABCD-2345", "This code is not valid"), ("/pair x", "`/pair remove ID`")),
            (f"/pair {code}", "`fake:9` `Eve` may use this bot now, and I told them."),
        )
        await host.channel.wait_until(
            lambda: NEWCOMER in [a.text for a in host.channel.answers if a.address.chat_id == "9"]
        )
        assert await access_control.authorize(access_request()) == AccessDecision("member")


async def test_the_list_names_everybody_and_who_waits_and_is_for_a_private_chat(tmp_path):
    async with hosted(tmp_path) as (host, access_control):
        await say(host, f"/pair {await code_of(access_control, '8')}")
        group = {"chat": "-100", "topic": "7", "private": False}
        await talk(host, ("/pair here", "`/pair remove fake:-100`"), **group)
        await code_of(access_control)
        assert await say(host, "/pair") == (
            "**Owners**\n- `fake:1`, in the settings\n\n"
            f"**Members**\n- `fake:8` `Eve`, since {NOW:%Y-%m-%d}\n\n"
            f"**Chats where everyone may use the bot**\n- `fake:-100`, since {NOW:%Y-%m-%d}\n\n"
            "**Allowed by TAPEBOT_ALLOW**\n- `discord:5`\n\n"
            "**Access requests (ask the person for their code)**\n- `fake:9` `Eve`, asked just now"
        )
        told = await say(host, "/pair", private=False)
        assert "in private" in told
        assert "discord:5" not in told
        inside = replace(
            access_request(), private=False, address=Address("fake", "-100"), chat_ids=("-100",)
        )
        assert await access_control.authorize(inside) == AccessDecision("member")
        await talk(
            host,
            *(("/pair remove fake:8", "may no longer use"), ("/pair remove", "For example")),
            *(("/pair remove fake:77", "not on the list"), ("/pair remove `x\ny`", "not on the")),
            ("/pair remove fake:1", "TAPEBOT_OWNERS"),
            ("/pair remove discord:5", "TAPEBOT_ALLOW"),
        )


async def test_the_last_owner_stays(tmp_path):
    async with hosted(tmp_path, owners=()) as (host, access_control):
        await access_control.authorize(replace(access_request(), text=access_control.claim_code))
        assert "last owner" in await say(host, "/pair remove fake:9")
        assert await access_control.authorize(access_request()) == AccessDecision("owner")
