"""Settings: where they come from, and what is said when one is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bot.core.errors import SettingsError
from bot.runtime.settings import PREFIX, Settings, export_dotenv, load_settings

ROOT = Path(__file__).parents[3]
VARIABLES = {
    name: info for name, info in Settings.model_fields.items() if name not in ("models", "roles")
}
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    """An empty working directory and home, and no variable of tapebot's."""
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def refusal(**overrides):
    """Return the lines of the error that loading ends with."""
    with pytest.raises(SettingsError) as caught:
        load_settings(**overrides)
    return str(caught.value).splitlines()


def test_with_nothing_set_everything_has_a_usable_default(tmp_path):
    settings = load_settings()
    assert settings.home == tmp_path / ".tapebot"
    assert settings.workspace_folder == settings.home / "workspace"
    assert (settings.model, settings.tape_sync) == (None, "always")
    assert settings.console_name


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


def test_the_toml_file_may_stand_elsewhere(tmp_path, monkeypatch):
    (tmp_path / "other.toml").write_text('fallback_models = ["a/b", "offline"]\n')
    monkeypatch.setenv("TAPEBOT_CONFIG", "~/other.toml")
    assert load_settings().fallback_models == ("a/b", "offline")


def test_a_home_named_in_dotenv_decides_which_toml_file_is_read(tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "tapebot.toml").write_text("max_steps = 7\n")
    Path(".env").write_text("TAPEBOT_HOME=here\n")
    settings = load_settings()
    assert (settings.max_steps, settings.home) == (7, tmp_path / "here")


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_value_means_the_default_and_still_hides_a_farther_source(empty, monkeypatch):
    Path(".env").write_text("TAPEBOT_MODEL=openai/x\nTAPEBOT_MAX_STEPS=3\n")
    monkeypatch.setenv("TAPEBOT_MODEL", empty)
    monkeypatch.setenv("TAPEBOT_MAX_STEPS", empty)
    settings = load_settings()
    assert (settings.model, settings.max_steps) == (None, 12)


def test_lists_are_separated_by_commas(monkeypatch):
    monkeypatch.setenv("TAPEBOT_FALLBACK_MODELS", "openai/a, offline,,")
    assert load_settings().fallback_models == ("openai/a", "offline")


def test_a_workspace_has_an_id_only_where_it_is_set(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert load_settings().workspace_id is None
    assert load_settings(workspace="link").workspace_id == str(tmp_path / "real")


def test_settings_cannot_be_changed_once_read():
    with pytest.raises(ValueError, match="frozen"):
        load_settings().max_steps = 3


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("MAX_STEPS", "0", "a whole number of at least 1, at most 100"),
        ("MAX_STEPS", "two", "a whole number of at least 1, at most 100"),
        ("MODEL_TIMEOUT", "nan", "a number above 0, at most 3600"),
        ("MEMORY_WINDOW", "9", "of at least 10"),
        ("TAPE_SYNC", "never", "always or os"),
        ("LOG_LEVEL", "loud", "debug or info or warning or error"),
        ("TIMEZONE", "central", "did you mean America/Chicago?"),
        ("TIMEZONE", "Europe/Berln", "did you mean Europe/Berlin?"),
        ("TIMEZONE", "../../etc/hosts", "a time zone such as Europe/Berlin"),
        ("MODEL_API_BASE", "localhost:11434", "starts with http:// or https://"),
        ("MODEL_API_BASE", "http://", "starts with http:// or https://"),
        ("DISCORD_GATEWAY_URL", "ws://[", "starts with ws:// or wss://"),
        ("DISCORD_GATEWAY_URL", "https://host", "starts with ws:// or wss://"),
        ("DISCORD_GATEWAY_URL", "wss://host:99999", "starts with ws:// or wss://"),
        ("MODEL", "gpt 5", "a litellm model name"),
        ("OWNERS", "telegram:ada", "the ids of people, each telegram:"),
        ("OWNERS", "telegram:４２", "such as telegram:42"),
        ("OWNERS", "telegram:042", "such as telegram:42"),
        ("OWNERS", "telegram:42_", "such as telegram:42"),
        ("OWNERS", "telegram:42,telegram:-1001234567890", "the ids of people"),
        ("OWNERS", "telegrm:42", "did you mean telegram?"),
        ("OWNERS", "Discord:42", "did you mean discord?"),
        ("OWNERS", "console:42", "each telegram: or"),
        ("OWNERS", "42", "each telegram: or"),
        ("ALLOW", "telegram:+49123", "ids, each telegram: or"),
        ("ALLOW", "telegram:-0", "ids, each telegram: or"),
        ("ALWAYS_ANSWER", "discord:-5", "ids, each telegram: or"),
        ("MODEL", "gguf:", "the path of a file"),
        ("FALLBACK_MODELS", "openai/a,b c", "a litellm model name"),
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


def test_people_chats_and_servers_are_named_by_platform_and_id(monkeypatch):
    places = ("telegram:42", "telegram:-1001234567890", "discord:81384788765712384")
    monkeypatch.setenv("TAPEBOT_OWNERS", "telegram:42, discord:81384788765712384")
    monkeypatch.setenv("TAPEBOT_ALLOW", ",".join(places))
    monkeypatch.setenv("TAPEBOT_ALWAYS_ANSWER", ",".join(places))
    settings = load_settings()
    assert settings.owners == ("telegram:42", "discord:81384788765712384")
    assert settings.allow == settings.always_answer == places


def test_every_wrong_setting_has_its_own_line(monkeypatch):
    monkeypatch.setenv("TAPEBOT_MAX_STEPS", "x")
    monkeypatch.setenv("TAPEBOT_NONE_SUCH", "x")
    Path(".env").write_text("TAPEBOT_OPEN_TAPES=x\n")
    assert [re.split(r"[: ]", line)[0] for line in refusal()] == [
        "TAPEBOT_NONE_SUCH",
        "TAPEBOT_MAX_STEPS",
        "TAPEBOT_OPEN_TAPES",
    ]


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


def test_several_telegram_bots_each_have_a_channel_of_their_own(monkeypatch):
    monkeypatch.setenv("TAPEBOT_TELEGRAM_TOKEN", "123456:abcdefghijk, work=999:lmnopqrstuv")
    settings = load_settings()
    assert [one.channel for one in settings.telegram_token] == ["telegram", "telegram-work"]
    assert "999:lmnopqrstuv" in settings.secrets()


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


def test_the_keys_of_providers_in_the_environment_count_as_secrets(monkeypatch):
    monkeypatch.setenv("SOMEBODY_API_KEY", "value-of-somebody")
    assert "value-of-somebody" in load_settings().secrets()


@pytest.mark.parametrize("line", ['"open', "TAPEBOT_MAX_STEPS", "TAPEBOT_MAX_STEPS: 3"])
def test_a_line_of_dotenv_that_would_set_nothing_is_refused_by_its_number(line):
    Path(".env").write_text(f"# mine\nOPENAI_API_KEY=x\n{line}\n")
    assert refusal() == [".env, line 3: not in the form NAME=value."]


@pytest.mark.parametrize("name", [".env", ".tapebot/tapebot.toml"])
def test_a_file_that_cannot_be_read_is_named(name):
    Path(".tapebot").mkdir()
    Path(name).write_bytes(b"\xff\xfe\x00")
    (line,) = refusal()
    assert name in line
    assert "cannot be read" in line


def test_a_toml_file_cannot_name_another(tmp_path):
    Path(".tapebot").mkdir()
    Path(".tapebot/tapebot.toml").write_text('config = "x.toml"\n')
    assert "config cannot be set" in refusal()[0]


def test_what_dotenv_holds_for_libraries_reaches_them_but_overrules_nothing(monkeypatch):
    monkeypatch.setenv("ALREADY_SET", "old")
    monkeypatch.setenv("FROM_DOTENV", "")
    monkeypatch.delenv("FROM_DOTENV")
    Path(".env").write_text("FROM_DOTENV=new\nALREADY_SET=new\nTAPEBOT_MAX_STEPS=3\n")
    export_dotenv()
    assert os.environ["FROM_DOTENV"] == "new"
    assert os.environ["ALREADY_SET"] == "old"
    assert "TAPEBOT_MAX_STEPS" not in os.environ


def test_mcp_servers_are_tables_of_the_toml_file_and_their_keys_are_secrets(tmp_path):
    (tmp_path / ".tapebot").mkdir()
    (tmp_path / ".tapebot" / "tapebot.toml").write_text(
        '[mcp.files]\ncommand = "npx"\nargs = ["server"]\nenv = {KEY = "key-of-files"}\n'
        '[mcp.wiki]\nurl = "https://wiki.example/mcp"\nheaders = {Authorization = "Bearer of-wiki"}\n'
        '[mcp.crm]\nurl = "https://crm.example/mcp"\n'
        'oauth = {issuer = "https://id.example", client_id = "bot", client_secret = "of-crm"}\n'
    )
    settings = load_settings()
    assert settings.mcp["files"].args == ("server",)
    assert {"key-of-files", "Bearer of-wiki", "of-crm"} <= set(settings.secrets())
    assert "of-" not in repr(settings.mcp)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('[mcp.files]\ncomand = "x"', "files.comand"),
        ("[mcp.files]", "either command or url"),
        ('[mcp.files]\ncommand = "x"\nurl = "https://x.example"', "either command or url"),
        ('[mcp.Files_1]\ncommand = "x"', "at most 20 lower-case letters"),
        ('[mcp.files]\nurl = "ftp://x"', "starts with http:// or https://"),
        ('[mcp.files]\ncommand = "x"\nenv = {KEY = 123454321}', "files.env.KEY"),
    ],
)
def test_a_wrong_table_of_an_mcp_server_is_told_with_its_place(table, told, tmp_path):
    (tmp_path / ".tapebot").mkdir()
    (tmp_path / ".tapebot" / "tapebot.toml").write_text(table)
    lines = refusal()
    assert told in "\n".join(lines)
    assert all(line.startswith("TAPEBOT_MCP: ") for line in lines)
    assert "123454321" not in "\n".join(lines)


def test_without_a_server_nothing_of_mcp_is_loaded():
    look = (
        "import sys, bot.runtime.app, bot.runtime.app.build; "
        "print([m for m in sys.modules if m in {'mcp', 'httpx2', 'bot.mcp_client.client'}])"
    )
    command = [sys.executable, "-c", look]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def example_values():
    return dict(re.findall(r"^#(TAPEBOT_\w+)=(.*)$", EXAMPLE, re.MULTILINE))


def test_the_example_file_has_every_setting_and_no_other():
    assert set(example_values()) == {PREFIX + name.upper() for name in VARIABLES}


def test_the_example_file_describes_each_setting_in_its_own_words():
    for name, info in VARIABLES.items():
        assert f"# {info.description}\n#{PREFIX}{name.upper()}=" in EXAMPLE


@pytest.mark.parametrize(("name", "value"), sorted(example_values().items()))
def test_each_value_of_the_example_file_is_valid_and_the_default_where_there_is_one(name, value):
    Path(".env").write_text(f"{name}={value}\n")
    field = name.removeprefix(PREFIX).lower()
    given, default = getattr(load_settings(), field), getattr(Settings(_env_file=None), field)
    # What is unset in the example, or is the machine's own, has another value as its example.
    assert given == default or default in (None, (), {}) or field == "timezone"


def test_the_example_file_as_a_whole_sets_nothing():
    Path(".env").write_text(EXAMPLE)
    assert load_settings() == Settings(_env_file=None)


def test_reading_the_settings_loads_no_heavy_library():
    """The console is there at once: what takes seconds to import waits until it is used."""
    code = (
        "import sys, bot.runtime.settings; bot.runtime.settings.load_settings(); "
        "print([m for m in ('litellm','aiohttp','rich','prompt_toolkit','xllamacpp') "
        "if m in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(("machine", "zone"), [("Asia/Tokyo", "Asia/Tokyo"), ("Etc/UTC", "UTC")])
def test_times_are_shown_in_the_machines_zone_unless_another_is_set(machine, zone):
    code = (
        "from bot.runtime.settings import load_settings; "
        "print(load_settings().timezone, load_settings(timezone='Europe/Berlin').timezone)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), "TZ": machine},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == [zone, "Europe/Berlin"]
