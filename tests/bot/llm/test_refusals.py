"""What a provider refuses is left out, and what it says of waits and lengths is kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from model_rig import ASK, TOOLS, ask, both

from bot.core.errors import ContextOverflow, ModelRejected, TransientModelError
from bot.llm.base import ModelRequest
from testkit.openai_server import Call, Failure, Raw, Reply

OFFERING = ModelRequest(ASK.messages, TOOLS)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SEEN = ModelRequest([{"role": "user", "content": [{"type": "text", "text": "?"}, PICTURE]}], TOOLS)
LONG = ModelRequest([*ASK.messages, {"role": "user", "content": "word " * 4_000}])


@pytest.fixture
def client() -> str:
    """Give the client whose promise this is."""
    return "http"


def refuse(body: bytes, status: int = 429, *headers: tuple[str, str]) -> Raw:
    return Raw(body, status=status, headers=headers, content_type="application/json")


@both
@pytest.mark.parametrize(
    "refusal",
    [
        Failure(400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
        Failure(404, "No endpoints found that support tool use."),
        Failure(400, '"auto" tool choice requires --enable-auto-tool-choice to be set'),
        Failure(422, "Function calling is not enabled for this model"),
        Failure(500, "tools param requires --jinja flag"),
    ],
    ids=lambda one: one.message[:20],
)
async def test_a_model_without_tools_calls_them_in_its_text_from_then_on(
    provider, streamed, refusal
):
    written = '<tool_call>{"name": "memory_save", "arguments": {"fact": "tea"}}</tool_call>'

    def step(body):
        return refusal if body.get("tools") else Reply(written)

    model, server = await provider(step)
    for _ in range(2):
        reply, texts = await ask(model, streamed, OFFERING)
        assert [call.name for call in reply.tool_calls] == ["memory_save"]
        assert not any(texts)
    assert ["tools" in body for body in server.requests] == [True, False, False]
    assert "memory_save" in server.requests[-1]["messages"][0]["content"]
    assert model.profile.without == ("tools",)


async def test_what_was_called_in_text_goes_back_as_text(provider):
    model, server = await provider(
        lambda body: Failure(400, "no tools here") if body.get("tools") else Reply("done")
    )
    call = {"id": "a", "type": "function", "function": {"name": "memory_save", "arguments": "{}"}}
    told = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "Saved."},
    ]
    await ask(model, streamed=False, request=ModelRequest([*ASK.messages, *told], TOOLS))
    _, called, result = server.requests[-1]["messages"]
    assert '"name": "memory_save"' in called["content"]
    assert "Saved." in result["content"]
    assert {"tool_calls", "tool_call_id"}.isdisjoint({*called, *result})


async def test_a_refusal_that_has_nothing_to_do_with_tools_is_told_as_it_was(provider):
    model, server = await provider(lambda _: Failure(404, "no such model"))
    with pytest.raises(ModelRejected, match="no such model"):
        await ask(model, streamed=True, request=OFFERING)
    assert (len(server.requests), model.profile.without) == (1, ())


PASSING = [
    Failure(404, "model is loading, try again"),
    Failure(400, "The upstream is busy, contact support"),
    Failure(422, "transient"),
    Failure(405, "gateway"),
    Failure(501, "starting"),
]


@pytest.mark.parametrize("refusal", PASSING, ids=lambda one: str(one.status))
@pytest.mark.parametrize("times", [1, 2])
async def test_an_error_that_passes_takes_neither_tools_nor_sight(provider, refusal, times):
    model, server = await provider([*[refusal] * times, *[Reply("ok")] * 4], name="openai/gpt-4o")
    for _ in range(3):
        await ask(model, streamed=True, request=SEEN)
    assert (model.profile.without, model.profile.vision) == ((), True)
    assert "tools" in server.requests[-1]
    assert "image_url" in json.dumps(server.requests[-1])


async def test_tools_are_left_out_for_good_once_they_are_refused_again(provider):
    """Whatever the words."""

    def step(body):
        return Failure(400, "bad request") if "tools" in body else Reply("ok")

    model, server = await provider(step)
    for _ in range(3):
        await ask(model, streamed=True, request=OFFERING)
    assert ["tools" in body for body in server.requests] == [True, True, False, True, False, False]
    assert model.profile.without == ("tools",)


async def test_a_refusal_that_quotes_names_of_fields_leaves_none_out(provider):
    quoted = Failure(400, "Your prompt was blocked: 'what temperature, stream_options, tools'")

    def step(body):
        return quoted if "forbidden" in json.dumps(body["messages"]) else Reply("ok")

    model, server = await provider(step)
    parameters = {"temperature": 0.2}
    bad = ModelRequest([{"role": "user", "content": "forbidden"}], TOOLS, parameters=parameters)
    with pytest.raises(ModelRejected, match="blocked"):
        await ask(model, streamed=True, request=bad)
    await ask(
        model, streamed=True, request=ModelRequest(ASK.messages, TOOLS, parameters=parameters)
    )
    assert {"temperature", "stream_options", "tools"} <= set(server.requests[-1])
    assert model.profile.without == ()


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0.2"),
        ("parallel_tool_calls", "extra_forbidden: body.parallel_tool_calls"),
        ("stream_options", "stream_options is not permitted"),
    ],
)
async def test_a_field_that_is_refused_is_left_out_and_told(provider, field, text):
    request = ModelRequest(
        ASK.messages, parameters={"temperature": 0.2, "parallel_tool_calls": False}
    )
    model, server = await provider([Failure(400, text), Reply("a"), Reply("b")])
    await ask(model, streamed=True, request=request)
    await ask(model, streamed=True, request=request)
    assert [field in body for body in server.requests] == [True, False, False]
    assert model.profile.without == (field,)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (400, "Failed to deserialize: unknown variant `image_url`, expected `text`"),
        (404, "No endpoints found that support image input"),
    ],
)
async def test_pictures_that_are_refused_are_left_out(provider, status, text):
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    seen = ModelRequest([{"role": "user", "content": [{"type": "text", "text": "?"}, picture]}])
    model, server = await provider(
        lambda body: Failure(status, text) if "image_url" in json.dumps(body) else Reply("ok"),
        name="openai/gpt-4o",
    )
    for _ in range(2):
        await ask(model, streamed=True, request=seen)
    assert len(server.requests) == 3
    assert (model.profile.vision, model.profile.without) == (False, ("images",))


def until_reset(seconds: float) -> Raw:
    """Return a refusal that names the moment from which requests are taken again."""
    moment = (datetime.now(UTC).timestamp() + seconds) * 1000
    return refuse(b"{}", 429, ("x-ratelimit-reset", f"{moment:.0f}"))


@pytest.mark.parametrize(
    ("step", "seconds"),
    [
        (refuse(b'{"error": {"details": [{"@type": "t/google.rpc.RetryInfo", "retryDelay": "6s"}]}}'), 6.0),
        (refuse(b'[{"error": {"message": "Please retry in 6.5s."}}]'), 6.5),
        (Failure(429, "Rate limit reached. Please try again in 1m2.5s. Visit"), 62.5),
        (Failure(429, "Please try again in 120ms."), 0.12),
        (Failure(429, "Retry after 20 seconds"), 20.0),
        (refuse(b'{"error": "slow down", "retry_after": 5}'), 5.0),
        (refuse(b"{}", 429, ("retry-after-ms", "1500")), 1.5),
        (refuse(b"{}", 429, ("x-ratelimit-reset-requests", "6m0s"), ("x-ratelimit-reset-tokens", "250ms")), 0.25),
        (refuse(b"{}", 429, ("x-ratelimit-reset-requests", "8s"), ("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-tokens", "1s"), ("x-ratelimit-remaining-tokens", "9")), 8.0),
        (until_reset, 900.0),
        (Failure(413, "tokens per minute (TPM): Limit 6000, Requested 7000. Try again in 7s."), 7.0),
        (Failure(429, "slow down"), None),
    ],
)  # fmt: skip
async def test_a_wait_is_read_wherever_it_is_named(provider, step, seconds):
    model, _ = await provider([step(seconds) if step is until_reset else step])
    with pytest.raises(TransientModelError) as caught:
        await ask(model, streamed=True)
    assert caught.value.retry_after == (
        seconds if seconds is None else pytest.approx(seconds, abs=60 * (seconds == 900))
    )


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("This model's maximum context length is 8192 tokens, but you sent 9001.", 8_192),
        ("Range of input length should be [1, 204800]", 204_800),
        ("The prompt is longer than the maximum model length of 4,096.", 4_096),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200_000),
        ("prompt too long", None),
    ],
)
async def test_a_window_that_an_error_names_is_the_models(provider, text, most):
    model, _ = await provider([Failure(400, text)])
    with pytest.raises(ContextOverflow):
        await ask(model, streamed=True, request=LONG)
    assert model.profile.most_tokens == most


async def test_whatever_the_words_a_long_request_is_worth_one_try_shorter(provider):
    refusal = Failure(400, "请求过长")
    model, _ = await provider([refusal, refusal, Reply("ok"), refusal, Failure(400, "no")])
    worth = []
    for request in (LONG, LONG, ASK, LONG, ASK):
        try:
            await ask(model, streamed=True, request=request)
        except ModelRejected as error:
            worth.append(error.is_long)
    assert worth == [True, False, True, False]


@both
@pytest.mark.parametrize(
    "page",
    [
        Raw(b"<!doctype html><html>Hello</html>", content_type="text/html"),
        Raw(b"\xef\xbb\xbf <html>no such page</html>", status=404, content_type="text/html"),
        Raw(b"Ollama is running", content_type="text/plain"),
    ],
    ids=["a page", "no page", "a text"],
)
async def test_a_page_in_place_of_an_answer_is_told_as_what_it_is(provider, streamed, page):
    model, _ = await provider([page])
    with pytest.raises(ModelRejected, match=r"web page answered.*TAPEBOT_MODEL_API_BASE"):
        await ask(model, streamed)


async def test_fields_of_a_call_go_back_to_their_provider_and_to_no_other(provider):
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    function = {"name": "tape_search", "arguments": "{}"}
    delta = {
        "tool_calls": [{"index": 0, "id": "a", "function": function, "extra_content": signed}],
        "reasoning_details": [{"type": "x"}],
    }
    event = {"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}
    model, server = await provider([Raw(f"data: {json.dumps(event)}\n\n".encode()), Reply("a")])
    other, elsewhere = await provider([Reply("b")], name="openai/other")
    reply, _ = await ask(model, streamed=True, request=OFFERING)
    [call] = reply.tool_calls
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call.id, "type": "function", "function": function, **call.extra}],
        "origin": reply.origin,
        **reply.reasoning,
    }
    result = {"role": "tool", "tool_call_id": call.id, "content": "nothing"}
    request = ModelRequest([*ASK.messages, message, result], TOOLS)
    await ask(model, streamed=True, request=request)
    await ask(other, streamed=True, request=request)
    sent, foreign = server.requests[-1]["messages"][1], elsewhere.requests[0]["messages"][1]
    assert (sent["tool_calls"][0]["extra_content"], sent["reasoning_details"]) == (
        signed,
        [{"type": "x"}],
    )
    assert set(foreign) == {"role", "content", "tool_calls"}
    assert "extra_content" not in foreign["tool_calls"][0]
    assert "origin" not in {*sent, *foreign}
    assert Call("tape_search", "{}").name == call.name
