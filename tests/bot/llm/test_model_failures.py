"""Models on a provider over a real socket that fails, falls silent or sends nonsense."""

from __future__ import annotations

import gzip
import json
import resource

import anyio
import pytest
import stamina
from model_rig import HELLO, KEY, MODEL_MARKS, NAME, ask, both

from bot.core.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRejected,
    TransientModelError,
)
from bot.llm.bounds import MOST_TEXT
from bot.llm.call_slots import CallSlots
from bot.llm.retry import RetryingModel
from testkit.openai_server import (
    OVERFLOW,
    Disconnect,
    Failure,
    NoChoices,
    Raw,
    Reply,
    Step,
)

pytestmark = MODEL_MARKS


@both
@pytest.mark.parametrize(
    ("step", "error"),
    [
        (Failure(500), TransientModelError),
        (Failure(429, "slow down"), TransientModelError),
        (Failure(429, "out of money", "insufficient_quota"), ModelRejected),
        (Disconnect(), TransientModelError),
        (Reply("Half an ans", hang_up=True), TransientModelError),
        (NoChoices(), TransientModelError),
        (OVERFLOW, ContextOverflow),
        (Failure(401, f"Incorrect API key provided: {KEY}"), ModelAuthError),
        (Failure(404, "no such model"), ModelRejected),
    ],
    ids=lambda value: f"{value.status}-{value.message[:9]}" if isinstance(value, Failure) else None,
)
async def test_each_failure_is_its_own_error_and_no_error_holds_the_key(
    provider, streamed, step: Step, error
):
    model, _ = await provider([step])
    with pytest.raises(error) as caught:
        await ask(model, streamed)
    text = str(caught.value)
    assert type(caught.value) is error
    assert text.startswith(f"{NAME}: ")
    assert len(text) < 300
    assert KEY not in text
    for noise in ("litellm", "Exception", "{", "0x"):
        assert noise not in text


@both
async def test_a_provider_that_falls_silent_is_not_waited_for(provider, streamed):
    model, _ = await provider([Reply(HELLO, gate=anyio.Event())], timeout=0.2)
    with pytest.raises(TransientModelError):
        await ask(model, streamed)


def retrying(model, slots: CallSlots | None = None) -> RetryingModel:
    return RetryingModel(model, timeout_total=30.0, slots=slots or CallSlots(4))


async def test_a_retry_of_a_stream_never_doubles_the_text(provider):
    model, _ = await provider([Reply(HELLO, hang_up=True), Reply(HELLO)])
    with stamina.set_testing(True, attempts=4):
        reply, texts = await ask(retrying(model), streamed=True)
    assert texts[-1] == reply.content == HELLO
    assert all(HELLO.startswith(text) for text in texts)


def chunk(delta: object, ending: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": ending}
    return event({"choices": [choice]})


def event(change: dict[str, object]) -> bytes:
    base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**base, **change}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
WHOLE = b'{"id":"c","object":"chat.completion","created":1,"model":"m","choices":'
LARGE = 1 << 20


@pytest.mark.parametrize(
    ("step", "streamed", "words"),
    [
        (
            Raw(b'data: {"choices":[{"index":0,"delta":{"content":"', b"x" * LARGE, 200),
            True,
            "a line of more than 4 MB",
        ),
        (
            Raw(WHOLE + b'[{"index":0,"message":{"content":"', b"x" * LARGE, 200),
            False,
            "an answer of more than 32 MB",
        ),
        (Raw(b"", b": " + b"w" * 100_000 + b"\n", 1_000), True, "an answer of more than 32 MB"),
        (
            Raw(gzip.compress(b"x" * 10_000_000), headers=(("Content-Encoding", "gzip"),)),
            True,
            "packed as gzip",
        ),
        (Raw(b"<html>", b"sorry " * LARGE, 60, status=502), False, "more than 32 MB"),
    ],
    ids=["a chunk", "a body", "a stream without end", "a bomb", "an error page"],
)
async def test_what_a_server_sends_beyond_all_bounds_is_never_held_and_is_told(
    provider, step: Raw, streamed, words
):
    model, _ = await provider([Reply("warm"), step, Reply("good")])
    await ask(model, streamed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError, match=words) as caught:
        await ask(model, streamed)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    # The server is in this process, too.
    assert grown < 150_000_000
    assert "Error" not in str(caught.value)
    assert "good" in str(await ask(model, streamed))


async def test_an_answer_without_end_is_cut_at_its_bound_and_says_so(provider):
    model, _ = await provider(
        [Raw(chunk({"content": "word " * 200}), chunk({"content": "x" * 1_000}), 5_000)]
    )
    reply, _ = await ask(model, streamed=True)
    assert (len(reply.content), reply.finish_reason) == (MOST_TEXT, "length")


@pytest.mark.parametrize(
    "step",
    [
        Raw(event({"choices": None}) + DONE),
        Raw(chunk(None) + DONE),
        Raw(chunk({"tool_calls": [{"index": 0}]}) + DONE),
        Raw(chunk({"content": 7}) + DONE),
        Raw(b"data: [1, 2\n\n" + DONE),
        Raw(b"<html>I am a login page</html>", content_type="text/html"),
    ],
    ids=lambda step: step.head[-60:].decode(),
)
async def test_a_stream_of_nonsense_is_told_in_plain_words(provider, step):
    """It is an error of the model's with plain words, or an answer; never Python's own words."""
    model, _ = await provider([step])
    said = ""
    try:
        await ask(model, streamed=True)
    except ModelError as error:
        said = str(error)
    for noise in ("NoneType", "object", "attribute", "Traceback", "KeyError", "Error:", "pydantic"):
        assert noise not in said, said
