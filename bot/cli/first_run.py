"""The first interactive run: offer a language model that is available, once.

It calls nothing but Ollama's usual address on this machine, and uses no key before the person has
agreed.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import urllib.request

from bot.core.files import private_directory, replace_file
from bot.core.i18n import _
from bot.runtime.settings import Settings, load_settings

OLLAMA = "http://127.0.0.1:11434"

_PROVIDERS = (
    ("ANTHROPIC_API_KEY", "anthropic/claude-haiku-4-5"),
    ("OPENAI_API_KEY", "openai/gpt-5-mini"),
    ("GEMINI_API_KEY", "gemini/gemini-2.5-flash"),
    ("OPENROUTER_API_KEY", "openrouter/openai/gpt-5-mini"),
    ("MISTRAL_API_KEY", "mistral/mistral-small-latest"),
    ("DEEPSEEK_API_KEY", "deepseek/deepseek-chat"),
    ("GROQ_API_KEY", "groq/llama-3.3-70b-versatile"),
)


def offer_model(settings: Settings) -> Settings:
    """Return the settings, with a model if the person at the terminal chose one.

    The choice is written to ``settings.config``, by default ``tapebot.toml`` in the home folder; a
    refusal is recorded in ``.asked``.
    """
    path = settings.home / ".asked"
    interactive = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if settings.model is not None or settings.models or not interactive or path.exists():
        return settings
    found = _found()
    if found is None:
        return settings
    why, name = found
    private_directory(settings.home)
    print(
        _(
            "{why}. {name} would then answer, and your messages would be sent there.",
            why=why,
            name=name,
        )
    )
    chosen = _ask(name)
    if chosen is None:
        replace_file(path, b"")
        print(_("The offline responder answers. Set TAPEBOT_MODEL to change that."))
        return settings
    checked = load_settings(model=chosen)
    line = f"model = {json.dumps(chosen)}\n"
    config = settings.config or settings.home / "tapebot.toml"
    before = config.read_bytes() if config.exists() else b""
    replace_file(config, line.encode() + before)
    print(_("Saved in {config}.", config=config))
    return checked


def _ask(name: str) -> str | None:
    """Return the model that the person chose; None for none."""
    while True:
        try:
            reply = input(_("Use it? [y/N, or another model as provider/model] ")).strip()
        except EOFError:
            return None
        if reply.lower() in ("", "n", "no"):
            return None
        if reply.lower() in ("y", "yes"):
            return name
        if "/" in reply and " " not in reply:
            return reply
        print(_("{reply!r} is not yes, no or a model such as {name}.", reply=reply, name=name))


def _found() -> tuple[str, str] | None:
    """Return why a model is available, and the model's name; None if there is none."""
    for variable, name in _PROVIDERS:
        if os.environ.get(variable):
            return _("{variable} is set", variable=variable), name
    try:
        with urllib.request.urlopen(f"{OLLAMA}/api/tags", timeout=0.3) as response:  # noqa: S310  # loopback
            models = json.load(response).get("models", [])
    except (OSError, ValueError, http.client.HTTPException):
        return None
    names = [model.get("name") for model in models if isinstance(model, dict)]
    return (
        (_("Ollama runs here with {name}", name=names[0]), f"ollama_chat/{names[0]}")
        if names
        else None
    )
