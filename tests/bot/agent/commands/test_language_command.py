"""``/language``: a person's own choice, their client's language, and the installation's."""

from dataclasses import replace

import pytest

from bot.core.i18n import LANGUAGES
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


@pytest.mark.parametrize("wanted", ["de-AT", "DE", "deutsch"])
async def test_a_language_is_chosen_by_code_or_name(tmp_path, wanted):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert "Deutsch" in await host.channel.ask(f"/language {wanted}")
        assert await host.channel.ask("/stop") == NOTHING_RUNS["de"]


async def test_an_unknown_language_is_refused_with_the_closest_one(tmp_path):
    async with session_host(tmp_path, ScriptedModel([])) as host:
        assert "`/language it`" in await host.channel.ask("/language italiana")
        assert "I do not speak `kl'ingon`" in await host.channel.ask("/language kl`ingon")
        assert await host.channel.ask("/stop") == NOTHING_RUNS["en"]


async def test_in_a_group_each_person_is_answered_in_their_language(tmp_path):
    bob = replace(ADA, id="2", name="Bob", language="fr")
    async with session_host(tmp_path, ScriptedModel([])) as host:

        async def ask(sender):
            return await host.channel.ask("/stop", sender=sender, private=False, chat="-5")

        assert await ask(GERMAN_CLIENT) == NOTHING_RUNS["de"]
        assert await ask(bob) == NOTHING_RUNS["fr"]
        assert await ask(replace(ADA, id="3")) == NOTHING_RUNS["en"]
