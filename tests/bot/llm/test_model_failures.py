"""Models on a provider over a real socket that fails, falls silent or sends nonsense."""

from __future__ import annotations

import gzip
import json
import resource
from copy import deepcopy

import anyio
import pytest
import stamina
from model_rig import ASK, HELLO, KEY, MODEL_MARKS, NAME, ask, both, make_model
from stamina import instrumentation

from bot.core.errors import (
    ContextOverflow,
    ModelAuthError,
    ModelError,
    ModelRejected,
    TransientModelError,
)
from bot.llm.base import ModelRequest, ToolSpec
from bot.llm.bounds import MOST_TEXT
from bot.llm.call_slots import CallSlots
from bot.llm.retry import FallbackModel, RetryingModel
from testkit.openai_server import (
    OVERFLOW,
    RATE_LIMITED,
    Call,
    Disconnect,
    Failure,
    NoChoices,
    Raw,
    Reply,
    ScriptedOpenAI,
    Step,
)

pytestmark = MODEL_MARKS


@both
@pytest.mark.parametrize(
    ("step", "error"),
    [
        (Failure(500), TransientModelError),
        (Failure(503), TransientModelError),
        (Failure(429, "slow down"), TransientModelError),
        (Failure(429, "out of money", "insufficient_quota"), ModelRejected),
        (Disconnect(), TransientModelError),
        (Reply("Half an ans", hang_up=True), TransientModelError),
        (NoChoices(), TransientModelError),
        (OVERFLOW, ContextOverflow),
        (Failure(400, "prompt is too long: 210000 tokens > 200000 maximum"), ContextOverflow),
        (Failure(401, f"Incorrect API key provided: {KEY}"), ModelAuthError),
        (Failure(403, f"{KEY} may not"), ModelAuthError),
        (Failure(404, "no such model"), ModelRejected),
        (Failure(400, "unsupported parameter"), ModelRejected),
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


async def test_a_stream_that_ends_without_a_reason_is_not_an_answer(provider):
    model, _ = await provider([Reply("Half an ans", finish_reason="")])
    with pytest.raises(TransientModelError):
        await ask(model, streamed=True)


@both
async def test_the_wait_that_a_provider_asks_for_is_reported(provider, streamed):
    model, _ = await provider([Failure(429, "slow down", retry_after="17")])
    with pytest.raises(TransientModelError) as caught:
        await ask(model, streamed)
    assert caught.value.retry_after == 17


@both
async def test_a_provider_that_falls_silent_is_not_waited_for(provider, streamed):
    """Before the answer or in the middle of it."""
    model, _ = await provider([Reply(HELLO, gate=anyio.Event())], timeout=0.2)
    with pytest.raises(TransientModelError):
        await ask(model, streamed)


async def test_a_refused_connection_may_pass(client):
    model = make_model(client, NAME, "http://127.0.0.1:9/v1", timeout=5.0)
    with anyio.fail_after(30), pytest.raises(TransientModelError) as caught:
        await ask(model, streamed=True)
    assert "ssl" not in str(caught.value)
    await model.aclose()


async def test_a_missing_key_is_named_before_anything_is_sent(client, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    model = make_model(client, NAME, key=None)
    with pytest.raises(ModelAuthError, match="set OPENAI_API_KEY"):
        await ask(model, streamed=False)
    await model.aclose()


async def test_a_name_without_a_provider_is_explained():
    model = make_model("litellm", "gpt")
    with pytest.raises(ModelRejected, match="write provider/model"):
        await ask(model, streamed=False)
    await model.aclose()


async def test_a_provider_that_wants_other_schemas_leaves_the_tools_as_they_are():
    """Every request shares them, also that to the next model."""
    schema = {"type": "object", "properties": {"fact": {"type": "string"}}, "strict": True}
    tools = (ToolSpec("memory_save", "Save.", deepcopy(schema)),)
    async with ScriptedOpenAI([]) as server:
        model = make_model("litellm", "gemini/gemini-2.0-flash", server.base_url)
        with pytest.raises(ModelError):  # the server speaks another protocol
            await ask(model, streamed=False, request=ModelRequest(ASK.messages, tools))
        await model.aclose()
    assert tools[0].parameters == schema


def retrying(model, slots: CallSlots | None = None) -> RetryingModel:
    """Wrap a model as the registry does."""
    return RetryingModel(model, timeout_total=30.0, slots=slots or CallSlots(4))


async def test_a_retry_waits_as_long_as_the_provider_asked(provider):
    waits: list[float] = []
    model, server = await provider([RATE_LIMITED, Reply("now")])
    before = instrumentation.get_on_retry_hooks()
    instrumentation.set_on_retry_hooks([lambda details: waits.append(details.wait_for)])
    try:
        reply, _ = await ask(retrying(model), streamed=False)
    finally:
        instrumentation.set_on_retry_hooks(before)
    assert (reply.content, waits, len(server.requests)) == ("now", [0.01], 2)


async def test_a_retry_of_a_stream_never_doubles_the_text(provider):
    """The text after the break starts anew, and no update ever holds it twice."""
    model, _ = await provider([Reply(HELLO, hang_up=True), Reply(HELLO)])
    with stamina.set_testing(True, attempts=4):
        reply, texts = await ask(retrying(model), streamed=True)
    assert texts[-1] == reply.content == HELLO
    assert all(HELLO.startswith(text) for text in texts)


async def test_the_next_model_answers_where_the_first_cannot(provider):
    refusing, _ = await provider([Failure(401, "no")], name="openai/first")
    answering, _ = await provider([Reply("here")], name="openai/second")
    reply, _ = await ask(FallbackModel([refusing, answering]), streamed=True)
    assert (reply.content, reply.model) == ("here", "openai/second")


async def test_a_cancelled_stream_leaves_the_model_usable(provider):
    """Cancelled between two fragments; the next call is answered in full."""
    gate = anyio.Event()
    model, server = await provider([Reply(HELLO, gate=gate), Reply("next")])
    with anyio.CancelScope() as scope:
        await model.complete(ASK, lambda _text: scope.cancel())
        pytest.fail("the stream ended though it was cancelled")
    gate.set()
    reply, _ = await ask(model, streamed=True)
    assert (scope.cancelled_caught, reply.content, len(server.requests)) == (True, "next", 2)


async def test_a_cancelled_call_waits_for_no_retry(provider):
    gate = anyio.Event()
    slots = CallSlots(1)
    model, server = await provider([Reply(HELLO, gate=gate), Reply("next")])
    wrapped = retrying(model, slots)
    with anyio.CancelScope() as scope:
        await wrapped.complete(ASK, lambda _text: scope.cancel())
    gate.set()
    assert (scope.cancelled_caught, len(server.requests), slots.statistics()["running"]) == (
        True,
        1,
        0,
    )


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


@both
async def test_too_many_calls_are_refused_at_once_and_none_is_made(provider, streamed):
    calls = tuple(Call("memory_save", "{}", f"call_{number}") for number in range(5_000))
    model, _ = await provider([Reply(calls=calls)])
    with pytest.raises(ModelRejected, match="at most 64 tool calls"):
        await ask(model, streamed)


@pytest.mark.parametrize(
    "step",
    [
        Raw(event({"choices": None}) + DONE),
        Raw(chunk(None) + DONE),
        Raw(chunk({"tool_calls": [{"index": 0}]}) + DONE),
        Raw(chunk({"tool_calls": [{"index": -3, "function": None}]}) + DONE),
        Raw(chunk({"content": 7}) + DONE),
        Raw(event({"choices": [], "usage": {"prompt_tokens": "many"}}) + DONE),
        Raw(b"data: [1, 2\n\n" + DONE),
        Raw(b"data: null\n\n" + DONE),
        Raw(b"<html>I am a login page</html>", content_type="text/html"),
        Raw(b""),
    ],
    ids=lambda step: step.head[-60:].decode(),
)
async def test_a_stream_of_nonsense_is_told_in_plain_words(provider, step):
    await told_plainly(provider, step, streamed=True)


@pytest.mark.parametrize(
    "body",
    [
        b"null}",
        b"[]}",
        b"[null]}",
        b'[{"index":0,"message":null,"finish_reason":"stop"}]}',
        b'[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function"}]}}]}',
        b"7}",
        b"[",
    ],
    ids=lambda body: body.decode(),
)
async def test_an_answer_of_nonsense_is_told_in_plain_words(provider, body):
    await told_plainly(provider, Raw(WHOLE + body), streamed=False)


async def told_plainly(provider, step: Raw, *, streamed: bool) -> None:
    """It is an error of the model's with plain words, or an answer; never Python's own words."""
    model, _ = await provider([step])
    said = ""
    try:
        await ask(model, streamed)
    except ModelError as error:
        said = str(error)
    for noise in ("NoneType", "object", "attribute", "Traceback", "KeyError", "Error:", "pydantic"):
        assert noise not in said, said
