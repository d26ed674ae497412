"""Settings of the site: where it listens, and that nobody's login goes over a network unencrypted traffic."""

from __future__ import annotations

import os

import pytest

from bot.core.errors import SettingsError
from bot.runtime.settings import PREFIX, load_settings


@pytest.fixture(autouse=True)
def clean(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.upper().startswith(PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def base(monkeypatch, **variables: str) -> str | None:
    for name, value in variables.items():
        monkeypatch.setenv(f"{PREFIX}{name.upper()}", value)
    return load_settings().web_base


def test_it_listens_on_this_machine_alone_unless_told_otherwise(monkeypatch):
    assert load_settings().web_listen == "127.0.0.1:8020"
    assert base(monkeypatch) == "http://127.0.0.1:8020"


@pytest.mark.parametrize("off", ["off", " OFF "])
def test_off_is_off(monkeypatch, off):
    assert base(monkeypatch, web_listen=off) is None
    assert load_settings().web_listen is None


@pytest.mark.parametrize(
    ("listen", "url", "expected"),
    [
        ("localhost:9000", "", "http://localhost:9000"),
        ("[::1]:9000", "", "http://[::1]:9000"),
        ("127.0.0.1:9000", "https://bot.example.org/", "https://bot.example.org"),
        ("0.0.0.0:9000", "https://bot.example.org:8443", "https://bot.example.org:8443"),
        ("127.0.0.1:9000", "http://localhost:9000", "http://localhost:9000"),
        # In a container, whose port is published on this machine alone.
        ("0.0.0.0:8020", "http://127.0.0.1:8020", "http://127.0.0.1:8020"),
        ("off", "", None),
    ],
    ids=range(7),
)
def test_the_address_is_the_public_one_where_there_is_one(monkeypatch, listen, url, expected):
    assert base(monkeypatch, web_listen=listen, web_url=url) == expected


@pytest.mark.parametrize(
    ("listen", "url", "said"),
    [
        ("0.0.0.0:8020", "", "lets other machines in"),
        ("[::]:8020", "", "lets other machines in"),
        ("bot.example.org:8020", "", "lets other machines in"),
        ("0.0.0.0:8020", "http://192.168.0.7:8020", "unencrypted traffic"),
        ("127.0.0.1:8020", "http://bot.example.org", "unencrypted traffic"),
        ("127.0.0.1:8020", "https://bot.example.org/bot", "without a path"),
        ("127.0.0.1:8020", "https://user@bot.example.org", "without a path"),
        ("127.0.0.1:8020", "bot.example.org", "https://"),
        ("8020", "", "HOST:PORT"),
        ("127.0.0.1:99999", "", "or off"),
    ],
    ids=range(10),
)
def test_what_would_let_others_read_logins_is_refused_with_what_to_do(
    monkeypatch, listen, url, said
):
    with pytest.raises(SettingsError, match=said) as caught:
        base(monkeypatch, web_listen=listen, web_url=url)
    assert "TAPEBOT_WEB_" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
