"""The offline responder answers each person in their language, and knows its replies in every other."""

from dataclasses import replace

import pytest
from offline_harness import FORGET, Chat

from bot.core.i18n import LANGUAGES, _, use_language
from bot.language.language_detection import language_of
from bot.llm.base import ModelRequest
from bot.offline import OfflineModel, phrases
from bot.offline.consolidation_input import (
    acknowledgement_of,
    parse_consolidation_input,
    was_forgotten,
)
from bot.offline.phrases import is_own_reply
from bot.offline.program_words import translated, translated_outcome
from bot.testing.fake_channel import ADA
from bot.testing.host import session_host
from tests.fullwidth_language import LANGUAGE, untranslated_words, write_catalogue

OF_ADA = "I live in Oslo.", "My sister Eva is a nurse.", "Remember that I like tea"
ASKED = (
    *("What do you know about me?", "Where do I live?", "Do I like coffee?", "Who was Caesar?"),
    *("hello", "thanks", "bye", "who are you", "ok", "you are wrong", "what time is it?"),
    *("write me a poem", "asdf qwerty", "Forget that I live in Oslo", "Forget everything"),
    *(
        "I live in Rome now.",
        "Where do I live?",
        "Remind me to call",
        "My exam is on 24 December 2026.",
    ),
    *("How many days until my exam?", "How many weeks until my exam?", "What are we working on?"),
)


def _conversation(said: str, reply: str) -> str:
    reply = reply.replace("\n", "\n  ")
    return (
        "## Conversation to Process\n"
        f"#1 [2026-11-21 22:41] USER (Ada): {said}\n#2 [2026-11-21 22:42] ASSISTANT: {reply}\n"
    )


@pytest.mark.parametrize("language", LANGUAGES)
async def test_what_was_answered_in_any_language_is_understood_later(language):
    chat = Chat(who="Ada")
    chat.tools = (*chat.tools, FORGET)
    with use_language(language):
        replies = [
            await chat.say(said) for said in (*OF_ADA, "I live in Oslo.", "Forget my sister")
        ]
        assert replies[0].startswith(_(phrases.NOTED).partition("{")[0])
    # The person may have chosen another language since.
    for said, reply, expected in zip(OF_ADA, replies, ["noted"] * 3, strict=False):
        talk = parse_consolidation_input(_conversation(said, reply)).messages
        assert acknowledgement_of(talk, 0) == expected
        assert is_own_reply(reply)
    talk = parse_consolidation_input(_conversation(OF_ADA[0], replies[3])).messages
    assert acknowledgement_of(talk, 0) == "known"
    talk = parse_consolidation_input(_conversation("Forget my sister", replies[4])).messages
    assert was_forgotten(talk, 0)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_an_answer_is_no_evidence_of_what_it_repeats(language):
    chat = Chat(who="Ada")
    with use_language(language):
        await chat.say("My sister Eva is a nurse.")
        assert is_own_reply(await chat.say("What is my sister?"))
        assert is_own_reply(await chat.say("Where does my brother live?"))


@pytest.mark.slow
async def test_every_word_of_a_reply_is_translated(tmp_path, monkeypatch):
    write_catalogue(tmp_path / "locale", monkeypatch)
    reader = replace(ADA, language=LANGUAGE)
    said = (*OF_ADA, *ASKED, "Ada", "offline", "tapebot", "litellm")
    said += tuple(one.rstrip(".?") for one in (*OF_ADA, *ASKED))
    # What is known is told in the words in which it is kept.
    said += (
        "The user lives in Oslo",
        "You live in Oslo",
        "You live in Rome now",
        "Your sister Eva is a nurse",
        "You like tea",
    )
    said += (
        "Your exam is on 24 December 2026",
        "that I live in Oslo",
        "I like tea",
        "call",
        "nurse",
    )
    async with session_host(tmp_path / "home", OfflineModel()) as host:
        for text in (*OF_ADA, *ASKED):
            reply = await host.channel.ask(text, sender=reader)
            assert untranslated_words(reply, said) == [], (text, reply)


async def test_who_reads_english_is_answered_in_the_language_that_they_write():
    chat = Chat(who="Ada")
    assert (await chat.say("Ich wohne in Bonn.")).startswith("Notiert: „Ich wohne in Bonn.“")
    assert (await chat.say("J'habite à Paris.")).startswith("C'est noté : «")
    with use_language("es"):
        assert (await chat.say("Ich mag Kaffee.")).startswith("Anotado: «Ich mag Kaffee.»")
    assert language_of("I live in Rome.") == "en"


@pytest.mark.parametrize("purpose", ["summary", "consolidation"])
async def test_what_it_writes_for_the_record_is_the_same_whoever_reads_it(purpose):
    text = _conversation("I live in Oslo.", "Noted.")
    request = ModelRequest([{"role": "user", "content": text}], purpose=purpose)
    written = []
    for language in ("en", "de", "ja"):
        with use_language(language):
            reply = await OfflineModel().complete(request)
            written.append(reply.content or reply.tool_calls[0].arguments)
    assert len(set(written)) == 1


def test_reasons_in_prompts_and_results_are_told_in_the_persons_language():
    with use_language("de"):
        why = translated_outcome("Not done: fact 3 does not end: the words say nothing of it.")
        assert why == "Tatsache 3 endet nicht: die Worte sagen nichts davon."
        assert translated("could not be fetched: it is no longer on Telegram") == (
            "konnte nicht geholt werden: sie ist nicht mehr auf Telegram"
        )
        assert translated("words of somebody") == "words of somebody"
    assert translated_outcome("") == ""
