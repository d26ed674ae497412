"""The rules of the pure modules: assembly, failures, profiles, and the registry's choice."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.errors import ContextOverflow, TransientModelError
from bot.llm.base import CapabilityProfile
from bot.llm.call_slots import CallSlots
from bot.llm.http.answer import ModelAnswer
from bot.llm.http.model import HTTPModel
from bot.llm.litellm import LiteLLMModel
from bot.llm.profiles import profile_for
from bot.llm.provider_errors import clean_error_text, model_error, retry_after
from bot.llm.streamed_reply import StreamedReply, tool_calls
from bot.runtime.models import ModelOptions, build_fallback, build_model

NOW = datetime(2026, 2, 10, 10, 0, tzinfo=UTC)


@given(
    st.lists(st.text(max_size=20), min_size=1, max_size=4),
    st.integers(1, 5),
    st.randoms(use_true_random=False),
)
def test_calls_streamed_in_any_order_of_pieces_are_whole(texts, size, random):
    """Whatever the interleaving, each call gets its own pieces in their order."""
    answer = StreamedReply()
    rest = []
    for index, text in enumerate(texts):
        answer.add_call(index, f"id{index}", f"tool{index}", "")
        rest.append([text[at : at + size] for at in range(0, len(text), size)])
    while any(rest):
        index = random.choice([index for index, left in enumerate(rest) if left])
        answer.add_call(index, None, None, rest[index].pop(0))
    assert [call.arguments for call in answer.calls()] == texts


@pytest.mark.parametrize("index", [0, None], ids=["all numbered 0", "not numbered"])
def test_calls_that_a_server_does_not_number_are_kept_apart(index):
    answer = StreamedReply()
    for name in ("a", "b"):
        answer.add_call(index, f"id-{name}", name, '{"x"')
        answer.add_call(index, None, None, ": 1}")
    assert [(call.name, call.arguments) for call in answer.calls()] == [
        ("a", '{"x": 1}'),
        ("b", '{"x": 1}'),
    ]


@given(st.lists(st.sampled_from([None, "", "same", "call_2", "other"]), max_size=6))
def test_no_two_calls_share_an_id(ids):
    calls = tool_calls((given_id, "tool", "{}") for given_id in ids)
    assert len({call.id for call in calls}) == len(ids)
    assert all(call.id for call in calls)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "Tue, 10 Feb 2026 10:00:30 GMT"}, 30.0),
        ({"retry-after": "Tue, 10 Feb 2026 09:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "9", "retry-after-ms": "1500"}, 1.5),
    ],
)
def test_every_form_of_retry_after_is_read(headers, seconds):
    assert retry_after(headers, NOW) == seconds


class Refused(Exception):
    """A foreign error with a status."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status_code = status


def test_too_many_tokens_a_minute_is_not_a_prompt_that_is_too_long():
    """Throttling by tokens is worth a wait; shortening the conversation is not."""
    text = "Too many tokens, please wait before trying again."
    assert type(model_error(Refused(429, text), name="m", now=NOW)) is TransientModelError
    assert type(model_error(Refused(400, text), name="m", now=NOW)) is ContextOverflow


@pytest.mark.parametrize("key", ["sk-proj-abc_DEF-123456789", "gsk_aaaabbbbcccc", "plain-old-key"])
def test_a_key_is_taken_out_of_any_text(key):
    text = clean_error_text(
        f"litellm.AuthenticationError: no: {key} (Bearer {key})", secret="plain-old-key"
    )
    assert key not in text
    assert text.startswith("no: [key]")


def test_a_key_of_the_environment_is_taken_out_too(monkeypatch):
    monkeypatch.setenv("SOME_PROVIDER_API_KEY", "an-unusual-secret")
    assert "unusual" not in clean_error_text("it was an-unusual-secret")


@given(st.text())
def test_a_text_is_one_short_line_whatever_the_provider_says(text):
    line = clean_error_text(text)
    assert len(line) <= 240
    assert "\n" not in line


@pytest.mark.parametrize(
    ("name", "small", "tools"),
    [
        ("openai/gpt-5-mini", False, True),
        ("somebody/unheard-of", False, True),
        ("ollama_chat/qwen3:4b", True, False),
        ("ollama_chat/llama3.2", True, False),
        ("ollama/qwen2.5:32b", False, True),
        ("gguf:some-70b.gguf", True, False),
    ],
)
def test_a_name_tells_what_a_model_can_do(name, small, tools):
    profile = profile_for(name)
    assert (profile.small, profile.tools) == (small, tools)


def test_the_price_list_corrects_the_window_of_hosted_models_only():
    info = {"max_input_tokens": 272_000, "supports_vision": True}
    assert profile_for("somebody/new", info) == CapabilityProfile(
        vision=True, context_tokens=272_000
    )
    local = "ollama_chat/qwen3:4b"
    assert profile_for(local, info) == profile_for(local)


async def test_a_fallback_of_another_provider_never_sees_the_key(monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    options, slots = ModelOptions("http://127.0.0.1:9/v1", "mine"), CallSlots(1)
    models = [
        build_model("openai/one", options, slots),
        build_fallback("openai/two", options, slots, of="openai/one"),
        build_fallback("anthropic/three", options, slots, of="openai/one"),
    ]
    inner = [each._inner for each in models]
    assert all(isinstance(each, HTTPModel) for each in inner)
    assert [(each._server.address, each._server.key) for each in inner] == [
        ("http://127.0.0.1:9/v1", "mine"),
        ("http://127.0.0.1:9/v1", "mine"),
        ("https://api.anthropic.com", None),
    ]


@pytest.mark.parametrize(
    ("name", "client", "kind"),
    [
        ("openai/one", "http", HTTPModel),
        ("openai/one", "litellm", LiteLLMModel),
        ("gemini/one", "http", LiteLLMModel),
    ],
)
def test_litellm_calls_what_is_not_called_over_http(name, client, kind):
    model = build_model(name, ModelOptions(client=client), CallSlots(1))
    assert isinstance(model._inner, kind)


def test_naming_a_model_loads_nothing_heavy():
    """The console is there at once; litellm comes with the first call or with ``warm``."""
    code = (
        "import sys; from bot.runtime.settings import load_settings;"
        "from bot.runtime.app.models import make_models;"
        "make_models(load_settings(model='openai/one', fallback_models=('openai/two',)));"
        "sys.exit(bool({'litellm', 'openai', 'xllamacpp'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "Please reduce the length of the messages or completion.",
    "Input is too long for requested model.",
    "the request exceeds the available context size, try increasing it",
    "prompt too long; exceeded max context length by 12 tokens",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "too many tokens: total number of tokens in the prompt cannot exceed 4081",
    "Invalid request: Your request exceeded model token limit: 262144",
    "Prompt exceeds max length",
    "Request body too large for gpt-4 model. Max size: 8000 tokens.",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097",
    "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_what_providers_say_of_a_prompt_that_is_too_long_is_an_overflow(text):
    assert type(model_error(Refused(400, text), name="m", now=NOW)) is ContextOverflow


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (429, "Rate limit reached on tokens per min (TPM): Limit 30000, Requested 40000."),
        (413, "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Used 9000"),
        (400, "max_tokens is too large: 9000. This model supports at most 4096 completion tokens"),
        (400, "Invalid 'messages[0].content': string too long"),
        (400, "You have exceeded your daily token limit: 1000 per day"),
    ],
)
def test_a_limit_on_rates_or_answers_is_no_overflow(status, text):
    assert type(model_error(Refused(status, text), name="m", now=NOW)) is not ContextOverflow


def test_reasoning_that_a_tape_could_not_record_is_not_carried_on():
    def nested(levels: int) -> list[Any]:
        value: list[Any] = []
        for _ in range(levels):
            value = [value]
        return value

    shallow, deep = {"reasoning_details": nested(50)}, {"reasoning_details": nested(5_000)}
    assert ModelAnswer(reasoning=shallow).carried() == shallow
    assert ModelAnswer(reasoning=deep).carried() == {}
