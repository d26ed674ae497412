"""What a person who talks as people do may rely on: nothing lost, nothing misread."""

from __future__ import annotations

import pytest
from offline_harness import Chat

from bot.llm.base import ModelRequest
from bot.offline import OfflineModel


async def _told(*messages: str, memory: str = "", who: str = "root") -> tuple[Chat, str]:
    """Say all messages in one conversation that has begun before; return the last answer."""
    chat = Chat(who=who, memory=memory)
    await chat.say("hi")
    answer = ""
    for message in messages:
        answer = await chat.say(message)
    return chat, answer


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("I live in Lisbon with my husband Rui and our two kids", "We moved to Porto", ("Rui", "two kids", "Porto")),
        ("I live in Lisbon with my husband Rui", "I live in Porto now", ("Rui", "Porto")),
        ("My meeting is at 3pm tomorrow", "My meeting was moved to 4pm", ("tomorrow", "4pm")),
        ("My exam is on 3 March at 14:00", "My exam is on 5 March", ("14:00", "5 March")),
        ("I have a dog named Rex and a cat named Tom", "I don't have a dog", ("Tom", "not have a dog")),
        ("I work as a nurse at Acme", "I work as a doctor", ("Acme", "doctor")),
    ],
)  # fmt: skip
async def test_a_newer_value_never_takes_other_facts_with_it(before, after, kept):
    chat, _ = await _told(before, after)
    assert all(part in chat.memory for part in kept)
    saves = len(chat.calls)
    await chat.say(after)
    assert len(chat.calls) == saves


async def test_the_old_home_goes_and_who_shares_it_stays():
    chat, _ = await _told(
        "I live in Lisbon with my husband Rui and our two kids", "We moved to Porto"
    )
    assert chat.memory == (
        "- The user moved to Porto.\n- The user lives with the user's husband Rui and the user's two kids."
    )
    assert [one["op"] for one in chat.calls[-1][1]["changes"]] == ["change", "add"]


async def test_a_line_that_says_nothing_else_is_replaced():
    chat, _ = await _told("I live in Paris, France.", "I live in Oslo.")
    assert chat.memory == "- The user lives in Oslo."


@pytest.mark.parametrize(
    ("asked", "line", "confirmed"),
    [
        ("Merk dir, dass ich gerne Tee trinke", "Ich gerne Tee trinke", "Ich merke mir das:"),
        ("N'oublie pas que j'aime le thé", "J'aime le thé", "Je m'en souviendrai"),
        ("recuerda que vivo en Madrid", "Vivo en Madrid", "Lo recordaré:"),
        ("Lembra-te que moro no Porto", "Moro no Porto", "Vou lembrar-me:"),
        ("ricordati che vivo a Roma", "Vivo a Roma", "Me ne ricorderò:"),
        ("запомни, что я люблю чай", "Я люблю чай", "Я запомню:"),
        ("请记住我喜欢喝茶", "我喜欢喝茶", "我会记住"),
        ("覚えておいて、お茶が好きです", "お茶が好きです", "覚えておきます"),
    ],
)
@pytest.mark.parametrize("saved_already", [True, False])
async def test_a_request_to_remember_is_kept_once_in_any_of_its_languages(
    asked, line, confirmed, saved_already
):
    chat, answer = await _told(asked, memory=f"- {line}" if saved_already else "")
    assert chat.memory == f"- {line}"
    assert answer.startswith(confirmed)
    assert line in answer


async def test_a_question_that_begins_as_a_request_is_not_remembered():
    chat, answer = await _told("remember that? it was fun")
    assert chat.memory == ""
    assert "I'll remember" not in answer


async def test_something_to_do_is_remembered_as_that():
    chat, answer = await _told("Remember to buy milk")
    assert chat.memory == "- The user wants to remember to buy milk."
    assert answer == 'I\'ll remember that: "buy milk"'


@pytest.mark.parametrize(
    "said",
    ["I love olives, esp. green ones", "I like pets, e.g. dogs", "I run approx. 5 km a day",
     "I like tea, coffee, etc. with milk", "I sleep max. 6 hours", "I live at 5 Elm Street, apt. 4"],
)  # fmt: skip
async def test_an_abbreviation_does_not_cut_a_statement(said):
    chat, answer = await _told(said)
    assert answer == f'Noted: "{said}"'
    assert said.split()[-1] in chat.memory


@pytest.mark.parametrize(
    ("messages", "memory"),
    [
        (("Ana's birthday is March 3rd", "Actually, Ana's birthday is on March 5th, I was wrong"),
         "- Ana's birthday is on March 5th."),
        (("my favourite colour is blue", "thats not true, my favorite color is green"),
         "- The user's favorite color is green."),
        (("my favourite colour is blue", "my fav color is now red"), "- The user's fav color is now red."),
        (("I weigh 63 kg now", "I weigh 61 kg now"), "- The user weighs 61 kg now."),
        (("My name is Bo", "that's wrong, my name is Al"), "- The user's name is Al."),
    ],
)  # fmt: skip
async def test_a_correction_replaces_what_was_wrong(messages, memory):
    chat, _ = await _told(*messages)
    assert chat.memory == memory


@pytest.mark.parametrize(
    "asked", ["what time is it?", "what day is today?", "What's the date?", "what is the time now"]
)
async def test_date_and_time_are_those_of_the_newest_message(asked):
    _, answer = await _told(asked)
    assert answer == "It is 22:42 on Saturday, 21 November 2026."


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("ok", "OK."), ("lol", "OK."), ("no", "OK."), ("Thanks!", "You're welcome."),
        ("you are wrong", "Tell me what is right, and I will note it."),
        ("that's not true", "Tell me what is right, and I will note it."),
    ],
)  # fmt: skip
async def test_a_word_in_passing_has_a_short_answer(said, expected):
    chat, answer = await _told(said)
    assert answer == expected
    assert chat.calls == []


async def test_an_insult_has_a_short_and_calm_answer():
    chat, answer = await _told("you are so stupid")
    assert len(answer) < 100
    assert chat.memory == ""


async def test_sorrow_is_met_before_it_is_noted():
    _, answer = await _told("I'm feeling really sad, my grandmother passed away this morning")
    assert answer.startswith("I'm sorry. Noted:")


@pytest.mark.parametrize(
    ("said", "asked", "expected"),
    [
        ("I used to smoke but I quit", "do I smoke?", "No. You used to smoke but you quit."),
        ("I used to smoke", "did I smoke?", "You used to smoke."),
        ("I hate my job", "Do I like my job?", "No. You hate your job."),
        ("I prefer tea", "do I prefer tea or coffee?", "You prefer tea."),
    ],
)
async def test_yes_is_said_only_where_it_is_so(said, asked, expected):
    _, answer = await _told(said, asked)
    assert answer.startswith(expected)


@pytest.mark.parametrize(
    ("said", "asked", "expected"),
    [
        (("My son Tomás just turned 4",), "how old is Tomás?", "Your son Tomás just turned 4."),
        (("my husband Rui is a chef",), "what is my husbands name", "Your husband Rui is a chef."),
        (("I live in Lisbon with my husband Rui", "We moved to Porto"), "what is my husbands name",
         "You live with your husband Rui."),
        (("My wife is Maria",), "who is my wife?", "Your wife is Maria."),
        (("I have a cat named Tom", "My dog Rex is 3"), "what pets do I have?", "You have a cat named Tom."),
        (("I have a cat named Tom", "My dog Rex is 3"), "what pets do I have?", "Your dog Rex is 3."),
        (("I live in Lisbon", "I moved to Porto"), "Where did I live before?", 'You said on 2026-11-21 22:42: "I live in Lisbon"'),
        (("My sister is Eva",), "did I tell you about my brother?", "No, I don't know anything about that yet."),
        (("The wifi password at the beach house is X",), "what is the wifi password?",
         "The wifi password at the beach house is X."),
    ],
)  # fmt: skip
async def test_a_question_as_people_ask_it_finds_what_was_said(said, asked, expected):
    _, answer = await _told(*said, asked)
    assert expected in answer
    assert "The closest thing" not in answer


async def test_how_many_is_answered_with_what_has_a_number():
    _, answer = await _told("I have two kids", "My kid Leo likes Lego", "how many kids do I have?")
    assert answer.startswith("You have two kids.")


CODE = (
    "if __name__ == '__main__': main()",
    "def name(self): return my.name",
    'my_name = input("What is my name")',
    "const name = my.name;",
    "```\nMy name is Zed.\n```",
)


@pytest.mark.parametrize("code", CODE)
async def test_pasted_code_is_neither_noted_nor_quoted_as_an_answer(code):
    chat, _ = await _told(code)
    assert chat.memory == ""
    assert (await chat.say("what is my name?")).startswith("I don't know that yet.")


@pytest.mark.parametrize(
    "said",
    ["My wifi password = hunter2 is old", "I like apple(s)", "My sister (Eva) lives in Oslo",
     "I return on Monday: my flight lands at 9:40", "I import wine from Italy."],
)  # fmt: skip
async def test_a_statement_with_signs_in_it_is_no_code(said):
    chat, _ = await _told(said)
    assert chat.memory


@pytest.mark.parametrize(
    "said", ["Remind me to call the dentist tomorrow", "Can you remind me tomorrow to call the dentist?"]
)  # fmt: skip
async def test_a_reminder_is_noted_and_not_promised(said):
    chat, answer = await _told(said)
    assert chat.memory == (
        "- The user wants to be reminded to call the dentist tomorrow (said on 2026-11-21)."
    )
    assert "I cannot send you reminders" in answer


@pytest.mark.parametrize("said", ["write me a poem", "zzz qqq", "who are you?", "My name is Ada."])
async def test_the_first_answer_says_once_what_is_answering(said):
    answer = await Chat().say(said)
    assert answer.count("offline responder") == 1


async def test_the_name_that_a_person_gave_is_the_one_that_is_used():
    chat, answer = await _told("my name is Marta", "bye")
    assert answer.startswith("Goodbye, Marta.")
    await chat.say("Je mange souvent du pain avec ma tante")
    assert '- Marta said: "Je mange souvent du pain avec ma tante"' in chat.memory
    assert "root" not in chat.memory


async def test_a_single_message_is_counted_as_one():
    text = "## Conversation to Process\n[2026-03-06 10:00] USER (Ada): hello"
    request = ModelRequest([{"role": "user", "content": text}], [], "none", purpose="summary")
    reply = await OfflineModel().complete(request)
    assert reply.content.startswith("1 message from")


async def test_what_moved_on_is_not_quoted_beside_what_stayed():
    _, answer = await _told(
        "I live in Lisbon with my husband Rui", "We moved to Porto", "who is Rui?"
    )
    assert answer.startswith("You live with your husband Rui.")
    assert "Lisbon" not in answer


async def test_a_newer_hour_is_told_before_the_day_that_still_stands():
    _, answer = await _told(
        "My meeting is at 3pm tomorrow", "My meeting was moved to 4pm", "when is my meeting?"
    )
    assert answer.startswith("- Your meeting was moved to 4pm.")
    assert "\n- Your meeting is tomorrow (said on 2026-11-21)." in answer
