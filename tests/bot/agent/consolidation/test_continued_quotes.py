"""A quote after the conversation is found in the message that says it, as if that had been cited."""

from __future__ import annotations

from continued_talk import cached_model, is_continued, kept, operation

from bot.bus import Sender
from bot.testing.host import Host, session_host

BOB = Sender("8", "Bob")


async def memory_of_new(host: Host, private: bool = True) -> str:
    assert await host.channel.ask("/new", private=private) == "New session started."
    return str(await host.channel.ask("/memory", private=private))


async def test_not_in_a_later_message_that_quotes_it(tmp_path):
    said = "I live in Kiel."
    model = cached_model(kept(operation("The user lives in Kiel.", said)))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(said)
        sent = await host.channel.send("Where is the nearest beach?", quote=said)
        await host.channel.wait_for_answer(sent)
        assert "The user lives in Kiel." in await memory_of_new(host)
    assert is_continued(model.requests_for("consolidation")[0])


async def test_of_each_person_of_a_group_who_says_the_same(tmp_path):
    said = "I am a vegetarian."
    facts = ("Ada (7) is a vegetarian.", "Bob (8) is a vegetarian.")
    model = cached_model(kept(*(operation(fact, said) for fact in facts)))
    async with session_host(tmp_path, model) as host:
        await host.channel.ask(said, private=False)
        await host.channel.ask(said, private=False, sender=BOB)
        shown = await memory_of_new(host, private=False)
    assert is_continued(model.requests_for("consolidation")[0])
    assert all(fact in shown for fact in facts)
