"""Model presets and roles in ``tapebot.toml``: what they build, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bot.core.errors import SettingsError
from bot.runtime.app.models import make_models
from bot.runtime.settings import PREFIX, load_settings

THREE = """
[models.cheap]
model = "openai/gpt-5-mini"
fallbacks = ["home", "openai/gpt-4o"]
temperature = 0.2
max_tokens = 900
api_key = "sk-cheap-0123456789"

[models.best]
model = "anthropic/claude-sonnet-4-5"
owner_only = true

[models.home]
model = "ollama_chat/qwen3:4b"
private = true
context_tokens = 4096
api_base = "http://127.0.0.1:11434"

[roles]
chat = "cheap"
consolidate = "home"
judge = "best"
"""


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    """An empty working directory and home, and no variable of tapebot's."""
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def load(text: str):
    """Return the settings with this ``tapebot.toml``."""
    Path(".tapebot").mkdir(exist_ok=True)
    Path(".tapebot/tapebot.toml").write_text(text)
    return load_settings()


def refusal(text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        load(text)
    return str(caught.value)


def test_presets_are_built_with_their_roles_limits_and_fallbacks():
    models = make_models(load(THREE))
    presets = models.presets
    assert [preset.name for preset in presets] == ["cheap", "best", "home"]
    assert [preset.name for preset in presets if preset.private] == ["home"]
    assert [preset.name for preset in presets if preset.owner_only] == ["best"]
    assert presets.default.name == "cheap"
    assert presets.select("consolidate").name == "home"
    assert presets.select("chat", chosen="best").name == "best"
    assert presets.select("chat", chosen="gone").name == "cheap"
    assert presets.select("chat", chosen="best", private=True).name == "home"
    assert models.judge is presets.get("best").model
    assert presets.get("home").context_tokens == 4096
    chain = [each.name for each in presets.default.model._models]
    assert chain == ["openai/gpt-5-mini", "ollama_chat/qwen3:4b", "openai/gpt-4o"]
    # A preset that is a fallback is the same model, so that a file is not loaded twice.
    assert presets.default.model._models[1] is presets.get("home").model


def test_what_was_set_before_presets_is_the_preset_default(monkeypatch):
    monkeypatch.setenv("TAPEBOT_MODEL", "openai/gpt-5-mini")
    monkeypatch.setenv("TAPEBOT_FALLBACK_MODELS", "home,offline")
    monkeypatch.setenv("TAPEBOT_CONTEXT_TOKENS", "5000")
    settings = load('[models.home]\nmodel = "gguf:/m.gguf"\nprivate = true\n')
    presets = make_models(settings).presets
    assert [preset.name for preset in presets] == ["default", "home"]
    assert [each.name for each in presets.default.model._models] == [
        "openai/gpt-5-mini",
        "gguf:m.gguf",
        "offline",
    ]
    assert (presets.default.context_tokens, presets.default.private) == (5000, False)


def test_the_offline_responder_counts_as_private():
    assert make_models(load("")).presets.select("chat", private=True).name == "default"


def test_models_that_only_embed_or_transcribe_are_not_offered_for_chats():
    settings = load(
        '[models.ears]\nmodel = "groq/whisper-large-v3"\n[roles]\ntranscription = "ears"\n'
    )
    models = make_models(settings)
    assert [preset.name for preset in models.presets] == ["default"]
    assert models.transcriber.name == "groq/whisper-large-v3"
    assert not models.private_transcriber


def test_the_keys_of_presets_are_secrets():
    settings = load(THREE)
    assert "sk-cheap-0123456789" in settings.secrets()
    assert "sk-cheap-0123456789" not in repr(settings)


ONE = '[models.one]\nmodel = "openai/x"\n'
HOME = '[models.home]\nmodel = "gguf:/m"\nprivate = true\n'
WRONG = {
    "an unknown role": (ONE + '[roles]\nchatt = "one"\n', "[roles] chatt: there is no such"),
    "a role's unknown preset": (
        HOME + '[roles]\nchat = "hoem"\n',
        "not 'hoem' (did you mean home?)",
    ),
    "an unknown setting": (ONE + "temprature = 1\n", "[models.one] temprature: there is no such"),
    "a hint": (ONE + "temprature = 1\n", "did you mean temperature?"),
    "no model": ("[models.one]\napi_key = 'sk-secret-123'\n", "[models.one] model: field required"),
    "a temperature": (ONE + "temperature = 7\n", "less than or equal to 2"),
    "a circle": (
        ONE + 'fallbacks = ["two"]\n[models.two]\nmodel = "openai/y"\nfallbacks = ["one"]\n',
        "one -> two -> one",
    ),
    "a fallback that is nothing": (
        ONE + 'fallbacks = ["hom"]\n' + HOME,
        "not 'hom' (did you mean home?)",
    ),
    "a private preset's fallback elsewhere": (
        '[models.home]\nmodel = "gguf:/m"\nprivate = true\nfallbacks = ["one"]\n' + ONE,
        "fallbacks of a private preset must be private, too; one is not",
    ),
    "a private model elsewhere": (ONE + "private = true\n", "is called over the internet"),
    "the default's name": ('[models.default]\nmodel = "openai/x"\n', "TAPEBOT_MODEL sets"),
    "two answers to one question": (
        'model = "openai/z"\n' + ONE + '[roles]\nchat = "one"\n',
        "chat, or TAPEBOT_MODEL, which means nothing beside it",
    ),
    "an option of a model that is not used": (
        "context_tokens = 9000\n" + ONE + '[roles]\nchat = "one"\n',
        "chat, or TAPEBOT_CONTEXT_TOKENS, which means nothing beside it",
    ),
    "a default that not everybody may use": (
        ONE + 'owner_only = true\n[roles]\nchat = "one"\n',
        "one is owner_only",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused_in_one_line_without_a_key(what):
    text, expected = WRONG[what]
    told = refusal(text)
    assert expected in told
    assert "\n" not in told
    assert "sk-secret" not in told


def test_presets_are_no_variables(monkeypatch):
    monkeypatch.setenv("TAPEBOT_MODELS", "{}")
    assert "write [models] in tapebot.toml" in refusal("")
