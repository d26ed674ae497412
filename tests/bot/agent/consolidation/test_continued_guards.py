"""When a consolidation does not continue the conversation's prompt, though a cache serves it."""

from __future__ import annotations

from continued_talk import cached_model, is_continued, kept, operation
from counting_talk import LEARNED, talk

from bot.bus import Sender
from bot.runtime.sessions.new_session import FAILED
from bot.tape.entries import MEMORY_CONSOLIDATED, SESSION_NEW
from bot.testing.host import HostLimits, session_host
from bot.testing.scripted_model import PausedStep, text_reply

BOB = Sender("8", "Bob")


async def test_after_a_chat_has_become_a_group_whose_prompt_lacks_a_persons_facts(tmp_path):
    model = cached_model(*[kept()] * 2, LEARNED)
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add I prefer trains to planes.", chat="2")
        await talk(host, 1)
        await host.channel.ask("/new")
        await talk(host, 2)
        assert "trains" in str(model.requests_for("turn")[-1].messages[0])
        await host.channel.send("hi all", private=False, sender=BOB, asks=False)
        await host.channel.ask("/new", private=False, sender=BOB)
    assert "trains" not in str(model.requests_for("consolidation")[-1].messages)


async def test_a_new_session_has_one_limit_for_both_ways_and_loses_nothing_at_it(tmp_path):
    """After an answer that cannot be used the model is asked once more, and that takes too long."""
    late = PausedStep(LEARNED)
    model = cached_model(text_reply("You counted to three."), late, LEARNED)
    async with session_host(tmp_path, model, bounds=HostLimits(archive_timeout=0.3)) as host:
        await talk(host, 3)
        told = await host.channel.ask("/new")
        assert told.startswith(FAILED)
        assert "took over 0.3 s" in told
        assert await host.events(SESSION_NEW) == await host.events(MEMORY_CONSOLIDATED) == []
        assert await host.channel.ask("/new") == "New session started."
        assert "The user counts number 1." in await host.channel.ask("/memory")
    asked = model.requests_for("consolidation")
    assert list(map(is_continued, asked)) == [True, False, False]
    assert "number 3" in str(asked[-1].messages)


async def test_facts_that_changed_since_the_prompt_began_are_told_as_they_are(tmp_path):
    model = cached_model(kept(), kept(operation("x", "y")))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask("/memory add I live in Rome.")
        await host.channel.ask("/new now")
        await talk(host, 2)
        await host.channel.ask("/memory edit 1 I live in Oslo.")
        await host.channel.ask("/new")
    told = str(model.requests_for("consolidation")[-1].messages[-1]["content"])
    assert "Oslo" in told.partition("## Current facts")[2]
