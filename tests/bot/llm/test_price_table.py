"""Prices are litellm's own, without litellm."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime

import pytest
from model_rig import MODEL_MARKS

from bot.llm.http.providers import PROVIDERS, find_server
from bot.llm.litellm_library import LiteLLMHandle
from bot.llm.price_table import call_cost, price_entry, read_price_entry

pytestmark = MODEL_MARKS

CALLS = (
    {"prompt": 1_000, "completion": 50, "cached": 0},
    {"prompt": 100_000, "completion": 4_000, "cached": 64_000},
    {"prompt": 250_000, "completion": 1_000, "cached": 128_000},
    {"prompt": 300_000, "completion": 1_000, "cached": 0},
)


PEAK = datetime(2026, 11, 26, 9, 59, tzinfo=UTC)
"""A Thursday at a time when no provider is cheaper."""

MOMENTS = (
    PEAK,
    datetime(2026, 11, 26, 10, 0, tzinfo=UTC),
    datetime(2026, 11, 27, 0, 59, tzinfo=UTC),
    datetime(2026, 11, 28, 9, 59, tzinfo=UTC),  # a Saturday
)


@pytest.mark.parametrize("at", MOMENTS, ids=str)
async def test_a_call_costs_what_litellm_says(at):
    """For each chat model of the providers that are called without it."""
    litellm = await LiteLLMHandle().load()
    from litellm._internal_context import pinned_billing_time

    named = {
        name
        if name.startswith(f"{entry['litellm_provider']}/")
        else f"{entry['litellm_provider']}/{name}"
        for name, entry in litellm.model_cost.items()
        if entry.get("mode") == "chat"
        and entry.get("litellm_provider") in PROVIDERS
        and entry.get("input_cost_per_token")
        and not name.startswith("together-ai-")  # litellm's classes of sizes, no models
    }
    assert len(named) > 100
    wrong = []
    for name in sorted(named):
        entry = price_entry(litellm.model_cost, name)
        for call in CALLS:
            if call["cached"] and "cache_read_input_token_cost" not in entry:
                continue  # litellm counts cached tokens as free where it knows no price of theirs
            usage = litellm.Usage(
                prompt_tokens=call["prompt"],
                completion_tokens=call["completion"],
                total_tokens=call["prompt"] + call["completion"],
                prompt_tokens_details={"cached_tokens": call["cached"]},
            )
            response = litellm.ModelResponse(model=name, usage=usage)
            with pinned_billing_time(at):
                theirs = litellm.completion_cost(completion_response=response, model=name)
            ours = call_cost(entry, at=at, **call)
            if ours != pytest.approx(theirs):
                wrong.append((name, call, ours, theirs))
    assert not wrong, wrong[:5]


def test_off_peak_hours_are_in_utc_and_days_on_the_providers_calendar():
    rules = {
        "weekday_timezone": "Asia/Shanghai",
        "windows": [{"hours_utc": "15:00-20:00", "weekdays": [6]}],
    }
    entry = {
        "input_cost_per_token": 2.0,
        "output_cost_per_token": 2.0,
        "off_peak_pricing": {"input_cost_per_token": 1.0, **rules},
    }

    def cost(day, hour):
        return call_cost(
            entry, at=datetime(2026, 11, day, hour, tzinfo=UTC), prompt=1, completion=1, cached=0
        )

    assert cost(28, 15) == 3
    assert cost(27, 16) == 3  # it is Saturday there
    assert cost(28, 16) == 4  # and Sunday
    assert cost(28, 14) == 4
    rules["windows"][0]["hours_utc"] = "at night"
    assert cost(28, 15) == 4


def test_a_model_without_a_price_has_none():
    assert read_price_entry("openai/nobodys-model") is None
    assert call_cost(None, at=PEAK, prompt=1, completion=1, cached=0) is None
    assert call_cost({"max_input_tokens": 9}, at=PEAK, prompt=1, completion=1, cached=0) is None


def test_no_library_is_loaded_for_a_price_or_a_model():
    code = (
        "import sys; from bot.llm.price_table import read_price_entry; import bot.llm.http.model;"
        "assert read_price_entry('openai/gpt-4o-mini');"
        "print([name for name in ('litellm', 'aiohttp', 'httpx', 'openai') if name in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "base", "address", "missing"),
    [
        ("openai/gpt-5", None, "https://api.openai.com/v1", "OPENAI_API_KEY"),
        ("openrouter/openai/gpt-5", None, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        ("ollama_chat/qwen3:4b", None, "http://127.0.0.1:11434", None),
        ("lm_studio/any", None, "http://127.0.0.1:1234/v1", None),
        ("openai/any", "http://10.0.0.2:8000/v1/", "http://10.0.0.2:8000/v1", None),
        ("fireworks_ai/any", "http://10.0.0.2/v1", "http://10.0.0.2/v1", None),
    ],
)
def test_a_server_is_found_by_the_models_name(name, base, address, missing):
    server = find_server(name, base, environment={})
    assert server is not None
    assert (server.address, server.missing_key) == (address, missing)


@pytest.mark.parametrize("name", ["gemini/gemini-2.5-flash", "bedrock/any", "gpt", "cohere/any"])
def test_other_protocols_are_left_to_litellm(name):
    assert find_server(name, environment={}) is None


def test_a_key_and_an_address_come_from_the_providers_variables():
    environment = {"OPENAI_API_KEY": "sk-1", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    server = find_server("openai/x", environment=environment)
    assert server is not None
    assert (server.key, server.address, server.official) == ("sk-1", "http://127.0.0.1:1/v1", False)
