"""What a provider refuses is left out, and what it says of waits and lengths is kept."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from model_rig import ASK, TOOLS, ask, both

from bot.core.errors import ModelRejected, TransientModelError
from bot.llm.base import ModelRequest
from testkit.openai_server import Failure, Raw, Reply

OFFERING = ModelRequest(ASK.messages, TOOLS)
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SEEN = ModelRequest([{"role": "user", "content": [{"type": "text", "text": "?"}, PICTURE]}], TOOLS)


@pytest.fixture
def client() -> str:
    return "http"


def refuse(body: bytes, status: int = 429, *headers: tuple[str, str]) -> Raw:
    return Raw(body, status=status, headers=headers, content_type="application/json")


@both
@pytest.mark.parametrize(
    "refusal",
    [
        Failure(400, "registry.ollama.ai/library/gemma3:4b does not support tools"),
        Failure(400, '"auto" tool choice requires --enable-auto-tool-choice to be set'),
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


PASSING = [
    Failure(404, "model is loading, try again"),
    Failure(400, "The upstream is busy, contact support"),
    Failure(422, "transient"),
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


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("temperature", "Unsupported value: 'temperature' does not support 0.2"),
        ("parallel_tool_calls", "extra_forbidden: body.parallel_tool_calls"),
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
        (refuse(b'{"error": {"retry_after_ms": 1500}}'), 1.5),
        (refuse(b"{}", 429, ("anthropic-ratelimit-tokens-reset", "2020-01-01T00:00:00Z")), 0.0),
        (Failure(429, "Too many requests: try again after 2020-01-01T00:00:00Z"), 0.0),
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
