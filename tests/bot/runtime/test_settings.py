"""Settings: where they come from, and what is said when one is wrong."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bot.core.errors import SettingsError
from bot.runtime.settings import PREFIX, Settings, export_dotenv, load_settings

ROOT = Path(__file__).parents[3]
VARIABLES = {
    name: info for name, info in Settings.model_fields.items() if name not in ("models", "roles")
}
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")


pytestmark = pytest.mark.usefixtures("bare")


def refusal(**overrides):
    """Return the lines of the error that loading ends with."""
    with pytest.raises(SettingsError) as caught:
        load_settings(**overrides)
    return str(caught.value).splitlines()


def test_the_nearer_source_wins(tmp_path, monkeypatch):
    home = tmp_path / ".tapebot"
    home.mkdir()
    toml = 'max_steps = 1\nmemory_window = 11\nsession_limit = 1\nlog_level = "error"\n'
    (home / "tapebot.toml").write_text(toml)
    Path(".env").write_text(
        "TAPEBOT_MAX_STEPS=2\nTAPEBOT_SESSION_LIMIT=2\nTAPEBOT_MEMORY_WINDOW=12"
    )
    monkeypatch.setenv("TAPEBOT_MAX_STEPS", "3")
    monkeypatch.setenv("TAPEBOT_SESSION_LIMIT", "3")
    settings = load_settings(max_steps=4)
    values = (
        settings.max_steps,
        settings.session_limit,
        settings.memory_window,
        settings.log_level,
        settings.open_tapes,
    )
    assert values == (4, 3, 12, "error", 256)


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("MAX_STEPS", "0", "a whole number of at least 1, at most 100"),
        ("MODEL_TIMEOUT", "nan", "a number above 0, at most 3600"),
        ("TAPE_SYNC", "never", "always or os"),
        ("TIMEZONE", "Europe/Berln", "did you mean Europe/Berlin?"),
        ("TIMEZONE", "../../etc/hosts", "a time zone such as Europe/Berlin"),
        ("MODEL_API_BASE", "localhost:11434", "starts with http:// or https://"),
        ("DISCORD_GATEWAY_URL", "https://host", "starts with ws:// or wss://"),
        ("MODEL", "gpt 5", "a litellm model name"),
        ("OWNERS", "telegram:ada", "the ids of people, each telegram:"),
        ("OWNERS", "telegram:４２", "such as telegram:42"),
        ("OWNERS", "telegram:42,telegram:-1001234567890", "the ids of people"),
        ("OWNERS", "telegrm:42", "did you mean telegram?"),
        ("OWNERS", "console:42", "each telegram: or"),
        ("ALLOW", "telegram:+49123", "ids, each telegram: or"),
        ("ALWAYS_ANSWER", "discord:-5", "ids, each telegram: or"),
        ("MODEL", "gguf:", "the path of a file"),
        ("USER_NAME", "A\nda", "one line"),
        ("CONFIG", "nowhere.toml", "a file that exists"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_with_name_value_and_what_is_allowed(
    variable, value, allowed, monkeypatch
):
    monkeypatch.setenv(PREFIX + variable, value)
    (line,) = refusal()
    assert line.startswith(f"{PREFIX}{variable}: given ")
    assert allowed in line
    assert repr(value)[1:-1].split(",")[-1] in line


@pytest.mark.parametrize("source", ["environment", "dotenv", "toml", "argument"])
def test_a_misspelt_setting_is_refused_from_every_source_and_the_nearest_is_named(
    source, tmp_path, monkeypatch
):
    overrides = {}
    if source == "environment":
        monkeypatch.setenv("TAPEBOT_MODLE", "x")
    elif source == "dotenv":
        Path(".env").write_text("TAPEBOT_MODLE=x\n")
    elif source == "toml":
        (tmp_path / ".tapebot").mkdir()
        (tmp_path / ".tapebot" / "tapebot.toml").write_text('modle = "x"\n')
    else:
        overrides["modle"] = "x"
    expected = "TAPEBOT_MODLE is not a setting of this version (did you mean TAPEBOT_MODEL?)."
    assert refusal(**overrides) == [expected]


@pytest.mark.parametrize("given", ["12345", "1:abcdefghijk,2:abcdefghijk", "No=1:abcdefghijk"])
def test_a_token_of_another_form_is_refused_and_not_shown(given, monkeypatch):
    monkeypatch.setenv("TAPEBOT_TELEGRAM_TOKEN", given)
    (line,) = refusal()
    assert line.startswith("TAPEBOT_TELEGRAM_TOKEN: given a secret; allowed: ")
    assert "abcdefghijk" not in line


def test_a_secret_is_in_no_error_and_no_text_of_the_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEBOT_MODEL_API_BASE", "ftp://ada:hunter22@host")
    (tmp_path / ".tapebot").mkdir()
    (tmp_path / ".tapebot" / "tapebot.toml").write_text("model_api_key = 987654321\n")
    lines = "\n".join(refusal())
    assert "TAPEBOT_MODEL_API_KEY: given a secret; allowed: text." in lines
    assert "987654321" not in lines
    assert "hunter22" not in lines
    monkeypatch.delenv("TAPEBOT_MODEL_API_BASE")
    settings = load_settings(model_api_key="abcdef-987654321")
    assert "987654321" not in f"{settings} {settings!r}"
    assert "abcdef-987654321" in settings.secrets()


@pytest.mark.parametrize("line", ['"open', "TAPEBOT_MAX_STEPS", "TAPEBOT_MAX_STEPS: 3"])
def test_a_line_of_dotenv_that_would_set_nothing_is_refused_by_its_number(line):
    Path(".env").write_text(f"# mine\nOPENAI_API_KEY=x\n{line}\n")
    assert refusal() == [".env, line 3: not in the form NAME=value."]


def test_what_dotenv_holds_for_libraries_reaches_them_but_overrules_nothing(monkeypatch):
    monkeypatch.setenv("ALREADY_SET", "old")
    monkeypatch.setenv("FROM_DOTENV", "")
    monkeypatch.delenv("FROM_DOTENV")
    Path(".env").write_text("FROM_DOTENV=new\nALREADY_SET=new\nTAPEBOT_MAX_STEPS=3\n")
    export_dotenv()
    assert os.environ["FROM_DOTENV"] == "new"
    assert os.environ["ALREADY_SET"] == "old"
    assert "TAPEBOT_MAX_STEPS" not in os.environ


def example_values():
    return dict(re.findall(r"^#(TAPEBOT_\w+)=(.*)$", EXAMPLE, re.MULTILINE))


def test_the_example_file_has_every_setting_and_no_other():
    assert set(example_values()) == {PREFIX + name.upper() for name in VARIABLES}


@pytest.mark.parametrize(("name", "value"), sorted(example_values().items()))
def test_each_value_of_the_example_file_is_valid_and_the_default_where_there_is_one(name, value):
    Path(".env").write_text(f"{name}={value}\n")
    field = name.removeprefix(PREFIX).lower()
    given, default = getattr(load_settings(), field), getattr(Settings(_env_file=None), field)
    # What is unset in the example, or is the machine's own, has another value as its example.
    assert given == default or default in (None, (), {}) or field == "timezone"


# Presets and roles of models.


def load(text: str):
    """Return the settings with this ``tapebot.toml``."""
    Path(".tapebot").mkdir(exist_ok=True)
    Path(".tapebot/tapebot.toml").write_text(text)
    return load_settings()


ONE = '[models.one]\nmodel = "openai/x"\n'
HOME = '[models.home]\nmodel = "gguf:/m"\nprivate = true\n'
WRONG = {
    "an unknown role": (ONE + '[roles]\nchatt = "one"\n', "[roles] chatt: there is no such"),
    "a role's unknown preset": (
        HOME + '[roles]\nchat = "hoem"\n',
        "not 'hoem' (did you mean home?)",
    ),
    "an unknown setting": (ONE + "temprature = 1\n", "[models.one] temprature: there is no such"),
    "a circle": (
        ONE + 'fallbacks = ["two"]\n[models.two]\nmodel = "openai/y"\nfallbacks = ["one"]\n',
        "one -> two -> one",
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
    "a default that not everybody may use": (
        ONE + 'owner_only = true\n[roles]\nchat = "one"\n',
        "one is owner_only",
    ),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_fit_is_refused_in_one_line_without_a_key(what):
    text, expected = WRONG[what]
    with pytest.raises(SettingsError) as caught:
        load(text)
    told = str(caught.value)
    assert expected in told
    assert "\n" not in told
    assert "sk-secret" not in told


# The site: nobody's login goes over a network unencrypted.


def base(monkeypatch, **variables: str) -> str | None:
    for name, value in variables.items():
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", value)
    return load_settings().web_base


@pytest.mark.parametrize(
    ("listen", "url", "expected"),
    [
        ("[::1]:9000", "", "http://[::1]:9000"),
        ("127.0.0.1:9000", "https://bot.example.org/", "https://bot.example.org"),
        ("0.0.0.0:9000", "https://bot.example.org:8443", "https://bot.example.org:8443"),
        # In a container, whose port is published on this machine alone.
        ("0.0.0.0:8020", "http://127.0.0.1:8020", "http://127.0.0.1:8020"),
        ("off", "", None),
    ],
    ids=range(5),
)
def test_the_address_is_the_public_one_where_there_is_one(monkeypatch, listen, url, expected):
    assert base(monkeypatch, web_listen=listen, web_url=url) == expected


@pytest.mark.parametrize(
    ("listen", "url", "said"),
    [
        ("0.0.0.0:8020", "", "lets other machines in"),
        ("bot.example.org:8020", "", "lets other machines in"),
        ("0.0.0.0:8020", "http://192.168.0.7:8020", "unencrypted traffic"),
        ("127.0.0.1:8020", "http://bot.example.org", "unencrypted traffic"),
        ("127.0.0.1:8020", "https://bot.example.org/bot", "without a path"),
        ("127.0.0.1:8020", "bot.example.org", "https://"),
        ("8020", "", "HOST:PORT"),
    ],
    ids=range(7),
)
def test_what_would_let_others_read_logins_is_refused_with_what_to_do(
    monkeypatch, listen, url, said
):
    with pytest.raises(SettingsError, match=said) as caught:
        base(monkeypatch, web_listen=listen, web_url=url)
    assert "TAPEBOT_WEB_" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
