"""The rules of the pure modules: assembly, failures, profiles, and the registry's choice."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_rig import TOOLS, ask
from odd_replies import PLAIN, THOUGHTS, WRITTEN

from bot.core.errors import ContextOverflow, ModelError
from bot.llm.call_slots import CallSlots
from bot.llm.http.answer import ServerError
from bot.llm.provider_errors import model_error
from bot.llm.streamed_reply import StreamedReply
from bot.runtime.models import ModelOptions, build_fallback, build_model
from testkit.anthropic_server import ScriptedAnthropic
from testkit.openai_server import Reply, ScriptedOpenAI

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


@given(
    st.sampled_from([*WRITTEN.values(), *THOUGHTS.values(), *PLAIN]),
    st.randoms(use_true_random=False),
)
def test_however_a_text_is_cut_its_calls_are_the_same_and_no_draft_shows_them(text, random):
    whole, cut_up = StreamedReply(TOOLS), StreamedReply(TOOLS)
    whole.add_text(text)
    content, calls = whole.content_and_calls()
    for piece in cut(text, random):
        cut_up.add_text(piece)
        assert content.startswith(cut_up.text.strip()) or text in THOUGHTS.values()
    assert cut_up.content_and_calls() == (content, calls)


def cut(text: str, random: Random) -> list[str]:
    ends = sorted(random.sample(range(len(text) + 1), min(3, len(text) + 1)))
    return [text[begin:end] for begin, end in pairwise([0, *ends, len(text)])]


@pytest.mark.slow
def test_naming_a_model_loads_nothing_heavy():
    """The console is there at once; litellm comes with the first call or with ``warm``."""
    code = (
        "import sys; from bot.runtime.settings import load_settings;"
        "from bot.runtime.app.models import make_models;"
        "make_models(load_settings(model='openai/one', fallback_models=('openai/two',)));"
        "sys.exit(bool({'litellm', 'openai', 'xllamacpp'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


async def test_a_fallback_of_another_provider_never_sees_the_key(monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with (
        ScriptedOpenAI([Reply("one"), Reply("two")]) as mine,
        ScriptedAnthropic([Reply("three")]) as others,
    ):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", others.base_url)
        options, slots = ModelOptions(mine.base_url, "my-key"), CallSlots(1)
        for model in (
            build_model("openai/one", options, slots),
            build_fallback("openai/two", options, slots, of="openai/one"),
        ):
            await ask(model, streamed=False)
            await model.aclose()
        assert [one["authorization"] for one in mine.headers] == ["Bearer my-key"] * 2
        model = build_fallback("anthropic/three", options, slots, of="openai/one")
        with suppress(ModelError):
            await ask(model, streamed=False)
        await model.aclose()
        assert "my-key" not in str(others.headers)
        assert len(mine.requests) == 2


OVERFLOWS = [
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "prompt is too long: 210000 tokens > 200000 maximum",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Please reduce the length of the messages or completion.",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
    "Request body too large for gpt-4 model. Max size: 8000 tokens.",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_what_providers_say_of_a_prompt_that_is_too_long_is_an_overflow(text):
    assert type(model_error(ServerError(text, 400), name="m", now=NOW)) is ContextOverflow
