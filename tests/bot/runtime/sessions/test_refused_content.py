"""What a model's server refuses is found, left out, remembered and told; the chat goes on."""

from __future__ import annotations

import base64
import json
from contextlib import asynccontextmanager

import pytest

from bot.bus import Attachment
from bot.bus.messages import Sender
from bot.llm.base import CapabilityProfile
from bot.llm.http.model import HTTPModel
from bot.llm.http.providers import find_server
from bot.testing.host import HostLimits, session_host
from testkit.openai_server import Call, Failure, Reply, ScriptedOpenAI

BAD = "zyxwv"
BROKEN = b"\x89PNG\r\n\x1a\n truncated"
FINE = b"\x89PNG\r\n\x1a\n whole"
SEEN = base64.b64encode(BROKEN).decode()
PICTURE_NOTE = "The model's server refused a picture. I go on without it."
TEXT_NOTE = "The model's server refused a part of the conversation. I go on without it."
MESSAGE_NOTE = "The model's server refused this message, so I cannot answer it. I go on without it."
FILTER = Failure(400, "The response was filtered", "content_filter")
BEN = Sender("8", "Ben")


def consolidates(body) -> bool:
    return "save_memory" in json.dumps(body.get("tool_choice"))


def turns(server) -> list[str]:
    """Return what was asked for turns, whatever is consolidated meanwhile."""
    return [json.dumps(one) for one in server.requests if not consolidates(one)]


def _answer(body):
    """Answer a turn, and consolidate without any fact."""
    if consolidates(body):
        return Reply(calls=(Call("save_memory", {"history_entry": "Kept.", "changes": []}),))
    return Reply("fine")


def filtering(refusal=FILTER, answer=_answer):
    """Return a script of a server that refuses the bad word and the broken picture anywhere."""

    def step(body):
        told = json.dumps(body)
        return refusal if BAD in told or SEEN in told else answer(body)

    return step


def refused(server) -> int:
    """Return how many requests held what the server refuses."""
    return sum(BAD in json.dumps(one) or SEEN in json.dumps(one) for one in server.requests)


def png(blob: str) -> Attachment:
    return Attachment("image", f"{blob}.png", "image/png", 20, blob=blob)


@asynccontextmanager
async def chat(folder, script, **more):
    """Run a session whose model is on a real server."""
    stored = {"broken": BROKEN, "fine": FINE}

    async def picture(name):
        return stored[name]

    async with ScriptedOpenAI(script) as server:
        at = find_server("openai/scripted", server.base_url, "a-key-of-nobody")
        assert at is not None
        profile = CapabilityProfile(vision=True, can_judge=False)
        model = HTTPModel("openai/scripted", at, timeout=10.0, profile=profile)
        try:
            async with session_host(folder, model, images=picture, **more) as host:
                yield host, server
        finally:
            await model.aclose()


async def asked_later(host, text, **more) -> str:
    """Return the answer to a message after a restart, whose ids the channel would give again."""
    sent = await host.channel.send(text, message_id=f"later: {text}", **more)
    return await host.channel.wait_for_answer(sent, within=20)


@pytest.mark.parametrize(
    "refusal",
    [
        FILTER,
        Failure(422, "Invalid image"),
        Failure(413, "too large"),
        Failure(451, "no"),
        Failure(403, '{"error": {"metadata": {"flagged_input": "..."}}}'),
        Failure(500, "cannot decode image"),
    ],
    ids=lambda one: str(one.status),
)
async def test_a_picture_that_is_refused_is_left_out_told_once_and_never_sent_again(
    tmp_path, refusal
):
    async with chat(tmp_path, filtering(refusal)) as (host, server):
        sent = await host.channel.send("what is it?", attachments=(png("broken"),))
        told = await host.channel.wait_for_answer(sent)
        assert told == f"fine\n\n_{PICTURE_NOTE}_"
        first = refused(server)
        assert "[a picture that the model's server refused]" in turns(server)[-2]
        assert await host.channel.ask("and now?") == "fine"
        assert await host.channel.ask("/new") == "New session started."
        assert refused(server) == first
    async with chat(tmp_path, filtering(refusal)) as (host, server):
        assert await asked_later(host, "after a restart") == "fine"
        assert await asked_later(host, "again", attachments=(png("broken"),)) == "fine"
        assert refused(server) == 0


async def test_a_message_that_a_filter_refuses_is_answered_honestly_and_left_out_later(tmp_path):
    async with chat(tmp_path, filtering()) as (host, server):
        assert await host.channel.ask("hello") == "fine"
        assert await host.channel.ask(f"tell me about {BAD}") == MESSAGE_NOTE
        first = refused(server)
        assert first == 2
        assert await host.channel.ask("something else") == "fine"
        assert "[a text that the model's server refused]" in turns(server)[-1]
    async with chat(tmp_path, filtering()) as (host, server):
        assert await asked_later(host, "after a restart") == "fine"
        assert await asked_later(host, "/new") == "New session started."
        assert await asked_later(host, "what did I ask you to tell me about?") == "fine"
        assert refused(server) == 0
        assert any(map(consolidates, server.requests))


async def test_a_refused_message_of_one_member_does_not_silence_a_group(tmp_path):
    bounds = HostLimits(group_context=20)
    async with chat(tmp_path, filtering(), bounds=bounds) as (host, server):
        group = {"chat": "9", "private": False}
        await host.channel.send(f"overheard {BAD}", asks=False, sender=BEN, **group)
        assert await host.channel.ask("what did Ben say?", **group) == f"fine\n\n_{TEXT_NOTE}_"
        first = refused(server)
        assert await host.channel.ask("and now?", **group) == "fine"
        assert await host.channel.ask("/new", **group) == "New session started."
        assert refused(server) == first


@pytest.mark.parametrize("where", ["fact", "quote", "result", "earlier"])
async def test_the_refused_part_is_found_wherever_it_stands(tmp_path, where):
    """A line of memory, a quoted text, a result of a tool, a message of before the restart."""

    def work(body):
        said = json.dumps(body["messages"])
        if where == "result" and "look it up" in said and '"tool"' not in said:
            return Reply(calls=(Call("memory_recall", {"query": "colours"}),))
        return _answer(body)

    strict = False

    def script(body):
        return filtering(answer=work)(body) if strict else work(body)

    async with chat(tmp_path, script) as (host, server):
        if where in ("fact", "result"):
            await host.channel.ask(f"/memory add My favourite colours are {BAD} and red.")
            await host.channel.ask("/new now")
        elif where == "earlier":
            await host.channel.ask(f"a word: {BAD}")
        for text in ("one", "two", "three"):
            await host.channel.ask(text)
        strict = True
        asked = {"quote": f"they said {BAD}"} if where == "quote" else {}
        sent = await host.channel.send("look it up", **asked)
        told = await host.channel.wait_for_answer(sent)
        assert told in (f"fine\n\n_{TEXT_NOTE}_", MESSAGE_NOTE)
        first = refused(server)
        assert await host.channel.ask("and then?") == "fine"
        assert refused(server) == first
        assert len(server.requests) < 40
        if where == "fact":
            assert "one" in turns(server)[-1]


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_errors_that_pass_censor_neither_a_message_nor_a_picture(tmp_path, times):
    left = 0

    def step(body):
        nonlocal left
        left -= 1
        return Failure(400, "Provider returned error") if left >= 0 else _answer(body)

    async with chat(tmp_path, step) as (host, server):
        for text in ("one", "two"):
            await host.channel.ask(text)
        left = times
        sent = await host.channel.send("my flight is at 9", attachments=(png("fine"),))
        await host.channel.wait_for_answer(sent)
        left = 0
        assert await host.channel.ask("when is it?") == "fine"
        told = turns(server)[-1]
        assert "my flight is at 9" in told
        assert base64.b64encode(FINE).decode() in told
        assert not await host.events("model.refused")
