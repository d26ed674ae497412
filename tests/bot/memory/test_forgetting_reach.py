"""An erasure takes all that repeats what a person forgets, and nothing of what others said."""

from __future__ import annotations

import shutil

import pytest

from bot.bus import Attachment
from bot.bus.media.blobs import FolderBlobs
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import (
    ScriptedModel,
    fact_change,
    text_reply,
    tool_call_reply,
)
from bot.transfer.backup_key import signer_of, signing_key
from bot.transfer.erased_list import erase_again
from tests.bot.agent.telling import BOB, EVE, GROUP, pressed, say

KEY = "I keep my spare key under the blue pot"
MEMBER = dict(GROUP, role="member")


def talking(*answers: str) -> ScriptedModel:
    said = iter(answers)
    return ScriptedModel(lambda _: text_reply(next(said, "ok")))


async def left(host: Host, tape: str, words: str) -> list[str]:
    """Return the entries of a tape that have these words."""
    told = [f"{e.kind} {e.payload} {e.meta}" for e in await host.tape(tape)]
    return [one for one in told if words in one]


async def test_who_quotes_it_keeps_neither_the_quote_nor_what_repeats_it(tmp_path):
    save = tool_call_reply(("memory_save", {"changes": [fact_change("The key is there.", KEY)]}))
    steps = iter([save, text_reply("noted"), text_reply(f"You said: {KEY}.")])
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")))
    async with session_host(tmp_path, model) as host:
        await say(host, KEY)
        await say(host, "Is that a good idea?", quote=KEY)
        await say(host, "/memory")
        await say(host, "/memory forget 1")
        await say(host, pressed(host)[0][1])
        assert await left(host, "fake:1", "blue pot") == []
        assert len(await left(host, "fake:1", "Is that a good idea?")) == 1


async def test_a_short_fact_is_gone_from_what_showed_it(tmp_path):
    async with session_host(tmp_path, talking()) as host:
        await say(host, "/memory add I'm gay")
        await say(host, "/memory")
        await say(host, "/memory forget 1")
        await say(host, pressed(host)[0][1])
        assert await left(host, "fake:1", "I'm gay") == []


async def test_of_others_only_copies_of_what_was_shared_go(tmp_path):
    bob = {"sender": BOB, "chat": "8", "role": "member"}
    async with session_host(tmp_path, talking()) as host:
        await say(host, "/memory add I live in Oslo near the station", **bob)
        await say(host, "/memory add Our office is in Oslo harbour")
        await say(host, "/memory share 1")
        for said in ("hi", "/new now", "hello"):
            await say(host, said, **bob)
        assert "Oslo harbour" in str(await host.tape("fake:8"))
        await say(host, "/memory forget oslo")
        await say(host, pressed(host)[0][1])
        assert await left(host, "fake:8", "Oslo harbour") == []
        assert await left(host, "fake:8", "add I live in Oslo near the station")
        assert "near the station" in await say(host, "/memory", **bob)


async def test_what_another_said_that_only_contains_it_stays(tmp_path):
    bob = {"sender": BOB, "chat": "8", "role": "owner"}
    said = "My daughter Ida is ill, so our office is in Oslo only until May"
    async with session_host(tmp_path, talking()) as host:
        await say(host, f"/memory add {said}", **bob)
        await say(host, "/memory share 1", **bob)
        await say(host, "/memory add Our office is in Oslo")
        await say(host, "/memory forget 1")
        await say(host, pressed(host)[0][1])
        assert said in await say(host, "/memory", **bob)


async def test_an_owners_yes_to_anothers_request_erases_no_more_than_it_showed(tmp_path):
    async with session_host(tmp_path, talking()) as host:
        await say(host, "I was at the clinic", sender=BOB, **MEMBER)
        for said in ("The clinic called me", "My sister works at that clinic"):
            await say(host, said, sender=EVE, **MEMBER)
        await say(host, "/memory forget clinic", sender=BOB, **MEMBER)
        await say(host, pressed(host)[0][1], **dict(GROUP, role="owner"))
        [kept, *_] = await left(host, "fake:-1", "The clinic called me")
        assert kept.startswith("message {'role': 'user'")


@pytest.mark.parametrize("arguments", ["[" * 1_200, '{"answered": ' * 1_200, "nothing"])
async def test_no_arguments_of_a_call_beside_an_answer_stop_the_session(tmp_path, arguments):
    calls = tool_call_reply(("memory_save", {}))
    call = calls.tool_calls[0]
    odd = type(calls)("Here.", (type(call)(call.id, call.name, arguments),), "tool_calls")
    model = ScriptedModel([odd, text_reply("well")])
    async with session_host(tmp_path, model) as host:
        assert await host.channel.ask("hello") == "well"


async def test_a_backup_from_after_an_erasure_is_restored_as_it_is(tmp_path):
    """Also what quoted the erased words, what stood beside them, and a file that was sent again."""
    steps = [
        tool_call_reply(("memory_daily", {"content": "Took the cat to Zanzibar hospital"})),
        text_reply("noted"),
        tool_call_reply(("memory_daily", {"content": "Paid the rent for January"})),
    ]
    told = iter(steps)
    model = ScriptedModel(lambda _: next(told, text_reply("ok")))
    home, restored = tmp_path / "home", tmp_path / "restored"
    blobs = FolderBlobs(home / "blobs")
    async with session_host(home, model) as host:
        await say(host, "Took the cat to Zanzibar hospital")
        await say(host, "Paid the rent for January")
        await say(host, KEY, sender=BOB, **MEMBER)
        await say(host, "My flight leaves at nine", sender=EVE, quote=KEY, **MEMBER)
        blob = await blobs.put(b"a contract")
        file = Attachment("document", "a.txt", "text/plain", 10, blob)
        await say(host, "the xylophone contract", attachments=(file,))
        for words in ("zanzibar", "xylophone"):
            await say(host, f"/memory forget {words}")
            await say(host, pressed(host)[0][1])
        await say(host, "/memory forget blue pot", sender=BOB, **MEMBER)
        await say(host, pressed(host)[0][1], sender=BOB, **MEMBER)
        host.clock.advance(3_600)
        await blobs.put(b"a contract")
        await say(host, "here it is again", attachments=(file,))
        before = [await host.tape(one) for one in ("fake:1", "fake:-1")]
        assert "Paid the rent" in str(before[0])
        assert "My flight leaves at nine" in str(before[1])
    shutil.copytree(home, restored)
    assert await erase_again(restored, signer_of(signing_key(home))) == 0
    async with session_host(restored, talking()) as host:
        for tape, entries in zip(("fake:1", "fake:-1"), before, strict=True):
            assert (await host.tape(tape))[: len(entries)] == entries
    assert await FolderBlobs(restored / "blobs").get(blob) == b"a contract"


async def test_what_said_a_fact_again_is_forgotten_with_it(tmp_path):
    again = "As I said: look beneath the azure flowers"
    first, second = (
        tool_call_reply(("memory_save", {"changes": [fact_change("The key is there.", words)]}))
        for words in (KEY, again)
    )
    steps = iter([first, text_reply("noted"), second, text_reply("yes")])
    model = ScriptedModel(lambda _: next(steps, text_reply("ok")))
    async with session_host(tmp_path, model) as host:
        await say(host, KEY)
        await say(host, again)
        await say(host, "/memory forget 1")
        await say(host, pressed(host)[0][1])
        assert await left(host, "fake:1", "azure") == []
