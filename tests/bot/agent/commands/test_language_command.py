"""``/language``: a person's own choice, their client's language, and the installation's."""

from dataclasses import replace

import pytest

from bot.core.i18n import LANGUAGES
from bot.runtime.settings import load_settings
from bot.testing.fake_channel import ADA
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel

GERMAN_CLIENT = replace(ADA, language="de")
NOTHING_RUNS = {"en": "Nothing is running.", "de": "Es läuft nichts.", "fr": "Rien n'est en cours."}


async def test_commands_are_answered_in_the_language_of_the_client(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert await host.channel.ask("/stop") == NOTHING_RUNS["en"]
        assert await host.channel.ask("/stop", sender=GERMAN_CLIENT) == NOTHING_RUNS["de"]
        # The client that was used last counts where a message states no language.
        assert await host.channel.ask("/stop") == NOTHING_RUNS["de"]


async def test_a_choice_comes_before_the_clients_language_and_outlives_a_restart(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert "English" in await host.channel.ask("/language english", sender=GERMAN_CLIENT)
        assert await host.channel.ask("/stop", sender=GERMAN_CLIENT) == NOTHING_RUNS["en"]
    async with session_host(tmp_path, ScriptedModel([])) as host:

        async def ask(text):
            return await host.channel.ask(text, sender=GERMAN_CLIENT, chat="2")

        assert await ask("/stop") == NOTHING_RUNS["en"]
        await ask("/language auto")
        assert await ask("/stop") == NOTHING_RUNS["de"]


async def test_the_command_offers_every_language_by_its_own_name(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        sent = await host.channel.send("/language")
        await host.channel.wait_for_answer(sent)
        buttons = host.channel.answers[-1].buttons
        assert [(one.label, one.command) for one in buttons] == [
            (title, f"/language {code}") for code, title in LANGUAGES.items()
        ]


@pytest.mark.parametrize(
    "wanted",
    ["de-AT", "DE", "deutsch", "Deutsch", "german", "GERMAN", "allemand", "Немецкий", "德语"],
)
async def test_a_language_is_chosen_by_code_or_name(tmp_path, wanted):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert "Deutsch" in await host.channel.ask(f"/language {wanted}")
        assert await host.channel.ask("/stop") == NOTHING_RUNS["de"]


async def test_in_a_group_each_person_is_answered_in_their_language(tmp_path):
    bob = replace(ADA, id="2", name="Bob", language="fr")
    async with session_host(tmp_path, ScriptedModel([])) as host:

        async def ask(sender):
            return await host.channel.ask("/stop", sender=sender, private=False, chat="-5")

        assert await ask(GERMAN_CLIENT) == NOTHING_RUNS["de"]
        assert await ask(bob) == NOTHING_RUNS["fr"]
        assert await ask(replace(ADA, id="3")) == NOTHING_RUNS["en"]


ZONES = {
    "Berlin": "Europe/Berlin",
    "berlin": "Europe/Berlin",
    "europe/berlin": "Europe/Berlin",
    "Berlin, Germany": "Europe/Berlin",
    "new york": "America/New_York",
    "NEW_YORK": "America/New_York",
    "são paulo": "America/Sao_Paulo",
    "Sao Paulo": "America/Sao_Paulo",
    "Wien": "Europe/Vienna",
    "Москва": "Europe/Moscow",
    "kolkata": "Asia/Kolkata",
    "Kyiv": "Europe/Kyiv",
    "utc": "UTC",
}


@pytest.mark.parametrize(("wanted", "zone"), ZONES.items())
async def test_a_time_zone_is_set_by_its_city_in_any_case(tmp_path, monkeypatch, wanted, zone):
    monkeypatch.setenv("TAPEBOT_TIMEZONE", wanted)
    assert load_settings(home=tmp_path).timezone == zone
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert f"`{zone}`" in await host.channel.ask(f"/timezone {wanted}")
        assert f"`{zone}`" in await host.channel.ask("/timezone")


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ("central", "Did you mean `/timezone America/Chicago` or `/timezone America/Winnipeg`?"),
        ("Brlin", "Did you mean `/timezone Europe/Berlin`?"),
        ("GMT+2", "Give its IANA name"),
        ("nowhere at all", "Give its IANA name"),
    ],
)
async def test_a_time_zone_that_is_not_clear_is_asked_about(tmp_path, wanted, told):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert told in await host.channel.ask(f"/timezone {wanted}")
        assert "`UTC`" in await host.channel.ask("/timezone")
