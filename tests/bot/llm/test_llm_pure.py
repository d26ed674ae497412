"""The rules of the pure modules: assembly, failures, profiles, and the registry's choice."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.errors import ContextOverflow, TransientModelError
from bot.llm.base import CapabilityProfile, ToolCall
from bot.llm.call_slots import CallSlots
from bot.llm.http.answer import carried
from bot.llm.http.model import HTTPModel
from bot.llm.litellm import LiteLLMModel
from bot.llm.profiles import profile_for
from bot.llm.provider_errors import clean_error_text, model_error, retry_after
from bot.llm.streamed_reply import StreamedReply, with_ids
from bot.runtime.models import ModelOptions, build_fallback, build_model

NOW = datetime(2026, 2, 10, 10, 0, tzinfo=UTC)


def function(index, call_id=None, name=None, arguments=None) -> dict[str, Any]:
    """Return a fragment of a call, as a server sends it."""
    return {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(st.text(max_size=4), VALUES, max_size=3), min_size=1, max_size=4),
    st.sampled_from(
        ["", "<think>Hm, a <b> or `</think>`?</think>", "<|channel|>analysis<|message|>Hm<|end|>"]
    ),
    st.text(max_size=20),
    st.randoms(use_true_random=False),
)
def test_however_a_reply_is_cut_into_pieces_it_is_the_same(objects, thought, text, random):
    """Whatever the interleaving, each call gets its own pieces in their order, and no draft shows a thought."""
    texts = [json.dumps(one) for one in objects]
    answer, drafts = StreamedReply(), []
    rest = [[(None, one) for one in thought + text]]
    for index, arguments in enumerate(texts):
        answer.add_call(function(index, f"id{index}", f"tool{index}", ""))
        rest.append([(index, piece) for piece in cut(arguments, random)])
    while any(rest):
        index, piece = random.choice([left for left in rest if left]).pop(0)
        if index is None:
            answer.add_text(piece)
            drafts.append(answer.text)
        else:
            answer.add_call(function(index, arguments=piece))
    whole = StreamedReply()
    whole.add_text(thought + text)
    assert [json.loads(call.arguments) for call in answer.calls()] == objects
    assert answer.answer.finish() == whole.answer.finish() == (text.lstrip() if thought else text)
    assert not any("Hm" in draft for draft in drafts if "Hm" not in text)


def cut(text: str, random: Random) -> list[str]:
    """Return a text in pieces."""
    ends = sorted(random.sample(range(len(text) + 1), min(3, len(text) + 1)))
    return [text[begin:end] for begin, end in pairwise([0, *ends, len(text)])]


SAME = [
    ("all numbered 0", [function(0, "a", "one", '{"x"'), function(0, None, None, ": 1}"), function(0, "b", "two", '{"x": 1}')]),
    ("not numbered", [function(None, "a", "one", '{"x"'), function(None, None, None, ": 1}"), function(None, "b", "two", '{"x": 1}')]),
    ("one index, and no ids", [function(0, None, "one", '{"x": 1}'), function(0, None, "two", '{"x": 1}')]),
    ("an id of each piece", [function(0, "a", "one", ""), function(0, "b", None, '{"x"'), function(0, "c", None, ": 1}"), function(1, "d", "two", '{"x": 1}')]),
    ("an id of each piece, and the name again", [function(0, "a", "one", ""), function(0, "b", "one", '{"x"'), function(0, "c", "one", ": 1}"), function(1, "d", "two", '{"x": 1}')]),
    ("ids without an index", [function(None, "a", "one", '{"x"'), function(None, "b", "two", '{"x"'), function(None, "a", None, ": 1}"), function(None, "b", None, ": 1}")]),
    ("heads again and again", [function(0, "a", "one", ""), function(0, "a", "one", '{"x"'), function(0, "a", "one", ": 1}"), function(1, "b", "two", '{"x": 1}')]),
    ("the whole call once more at the end", [function(0, "a", "one", '{"x"'), function(0, None, None, ": 1}"), function(1, "b", "two", '{"x": 1}'), function(0, "a", "one", '{"x":1}'), function(1, "b", "two", '{"x":1}')]),
    ("all arguments so far in each piece", [function(0, "a", "one", '{"x'), function(0, "a", None, '{"x": '), function(0, "a", None, '{"x": 1}'), function(1, "b", "two", '{"x": 1}')]),
    ("the arguments before the name", [function(0, "a", None, '{"x": 1}'), function(0, "a", "one", None), function(1, "b", "two", '{"x": 1}')]),
    ("an empty object first", [function(0, "a", "one", "{}"), function(0, "a", None, '{"x": 1}'), function(1, "b", "two", '{"x": 1}')]),
    ("an object in place of a text", [function(0, "a", "one", {}), function(0, "a", "one", {"x": 1}), function(1, "b", "two", {"x": 1})]),
    ("JSON in JSON", [function(0, "a", "one", json.dumps('{"x": 1}')), function(1, "b", "two", json.dumps(json.dumps('{"x": 1}')))]),
    ("one id for all", [function(0, "a", "one", '{"x": 1}'), function(1, "a", "two", '{"x": 1}')]),
    ("the end under another index", [function(0, "a", "one", '{"x"'), function(1, None, None, ": 1}"), function(2, "b", "two", '{"x": 1}')]),
]  # fmt: skip


@pytest.mark.parametrize(("_name", "pieces"), SAME, ids=[name for name, _ in SAME])
def test_pieces_that_belong_together_are_one_call_however_a_server_numbers_them(_name, pieces):
    answer = StreamedReply()
    for piece in pieces:
        answer.add_call(piece)
    calls = answer.calls()
    assert [(call.name, json.loads(call.arguments)) for call in calls] == [
        ("one", {"x": 1}),
        ("two", {"x": 1}),
    ]
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize("arguments", ["null", '""', "[]", "{}", " {} ", None, [], {}])
def test_nothing_is_what_a_tool_without_arguments_is_given(arguments):
    answer = StreamedReply()
    answer.add_call(function(0, "a", "now", arguments))
    assert answer.calls()[0].arguments in ("", "{}")


@given(st.lists(st.sampled_from(["", "same", "call_2", "other"]), max_size=6))
def test_no_two_calls_share_an_id(ids):
    calls = with_ids([ToolCall(given_id, "tool", "{}") for given_id in ids])
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
    assert carried(shallow) == shallow
    assert carried(deep) == {}
