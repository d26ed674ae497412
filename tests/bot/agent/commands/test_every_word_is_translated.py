"""Every word that a command says is in the language of whoever gave it."""

from dataclasses import replace

from acting import fetching_tool, obeying, writing_tool

from bot.bus import Sender
from bot.testing.fake_channel import ADA
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel
from tests.fullwidth_language import LANGUAGE, is_fullwidth, untranslated_words, write_catalogue

READER = replace(ADA, language=LANGUAGE)
BOB = Sender("9", "Bob", language=LANGUAGE)
SAID = (
    *(
        "I prefer green tea",
        "Ada",
        "Taxes",
        "Friday",
        "noon",
        "letters",
        "home",
        "call mom",
        "Which form",
    ),
    *(
        "/memory add",
        "/memory edit",
        "likes",
        "general",
        "ask",
        "draft",
        "drafts",
        "open",
        "deadline",
    ),
)
"""What the person says in the commands, their name, and what memory records of it."""

COMMANDS = (
    """/help
    /start
    /stop
    /retry
    /status
    /nothing
    /memory
    /memory nothing
    /memory add I prefer green tea
    /memory add I prefer green tea
    /memory
    /memory 1
    /memory why
    /memory why 1
    /memory why 99
    /memory edit
    /memory edit 1 I prefer green tea, letters home
    /memory edit 99 I prefer green tea
    /memory why 1
    /memory why 2
    /memory search
    /memory search green
    /memory search nowhere
    /memory beliefs
    /memory why p1
    /memory drop p1
    /memory pending
    /memory accept
    /memory accept 1
    /memory drop all
    /memory history
    /memory share 2
    /memory unshare w1
    /memory unshare w9
    /memory import
    /memory import nothing
    /memory pause
    /memory
    /memory resume
    /memory undo
    /memory undo
    /memory export
    /memory clear
    /memory clear yes
    /memory clear
    /memory forget
    /memory forget 99
    /memory forget w1
    /memory forget nowhere
    /memory forget green
    /memory forget only 9 1
    /memory forget yes 9
    /memory forget no 9
    /memory add I prefer green tea
    /problem
    /problem nothing
    /problem new
    /problem new Taxes
    /problem new Taxes
    /problem new general
    /problem
    /problem show
    /problem note
    /problem note ask Which form
    /problem note draft letters home
    /problem show
    /problem priority
    /problem priority Taxes 9
    /problem switch
    /problem switch nowhere
    /problem switch general
    /problem show Taxes
    /problem pause Taxes
    /problem background Taxes
    /problem
    /problem switch Taxes
    /problem switch Taxes
    /problem private
    /problem done
    /problem done
    /problem list done
    /problem switch Taxes
    /reference
    /reference deadline
    /reference set
    /reference set deadline Friday
    /reference deadline
    /reference set deadline Friday noon
    /reference versions deadline
    /reference versions nowhere
    /reference rollback deadline
    /reference rollback deadline 1
    /reference rollback deadline 9
    /reference share deadline
    /reference
    /reference unshare deadline
    /reference remove deadline
    /reference remove deadline
    /remind
    /remind sometime call mom
    /remind every Monday at 8 call mom
    /remind every 3 days at 9 call mom
    /remind in 20 minutes call mom
    /remind "0 8 * * 1-5" call mom
    /remind "0 8 L * *" call mom
    /schedules
    /schedules nothing
    /schedules pause 1
    /schedules pause 1
    /schedules resume 1
    /schedules resume 1
    /schedules change 1
    /schedules change 1 every 2 weeks on Friday at 7
    /schedules snooze 1 x
    /schedules snooze 1 10
    /schedules quiet
    /schedules quiet 22:00-07:00
    /schedules quiet never
    /schedules
    /schedules quiet off
    /schedules done 1
    /schedules done 3
    /schedules delete 1
    /schedules delete 1
    /schedules delete 99
    /schedules task
    /schedules task every 2 minutes call mom
    /schedules task every day at 8 call mom
    /schedules history
    /timezone
    /timezone Nowhere/Atall
    /timezone Asia/Tokyo
    /model
    /tape
    /tape nothing
    /tape anchors
    /tape anchors nowhere
    /tape search
    /tape search tea
    /tape search nowhere
    /budget
    /budget nothing
    /budget all
    /budget set
    /budget set everyone 5$ day
    /budget set everyone 5$ week
    /budget set someone 5$ day
    /budget set each 200k month
    /budget rate 3
    /budget
    /budget all
    /budget off nobody
    /budget off everyone
    /budget off everyone
    /status
    /approvals
    /approve
    /approve 9
    /deny 9
    /why
    /why 9
    /language
    /language klingon
    /files
    /files nothing
    /files keep
    /files keep letters.txt
    /files send
    /files send letters.txt
    /files find nowhere
    /files undo letters.txt
    /files delete letters.txt
    /skills
    /skills add
    /skills add nowhere
    /skills add /nowhere
    /skills letters
    /skills allow letters
    /skills a b c d
    /skills remove letters"""
).splitlines()


async def test_every_word_that_a_command_says_is_in_the_chosen_language(
    tmp_path, tmp_path_factory, monkeypatch
):
    write_catalogue(tmp_path_factory.mktemp("locale"), monkeypatch)
    english = []
    async with session_host(tmp_path, ScriptedModel([]), metered=True, files_mb=1) as host:
        for line in COMMANDS:
            command = line.strip()
            sent = await host.channel.send(command, sender=READER)
            reply = await host.channel.wait_for_answer(sent)
            labels = [one.label for one in host.channel.answers[-1].buttons]
            said = (*SAID, command, *command.split())
            english += [
                f"{command}: {' '.join(words)}\n    {text}"
                for text in (reply, *labels)
                if (words := untranslated_words(text, said))
            ]
    assert not english, "\n".join(english)


async def test_a_call_is_asked_about_in_the_persons_language_and_told_to_the_model_in_english(
    tmp_path, tmp_path_factory, monkeypatch
):
    write_catalogue(tmp_path_factory.mktemp("locale"), monkeypatch)
    model = ScriptedModel(obeying(("page_read", "x"), ("memory_save", "x")))
    tools = [writing_tool(tmp_path / "acts.txt"), fetching_tool("write tea")]
    english = []
    async with session_host(tmp_path, model, tools=tools) as host:
        for command in ("write tea", "/approvals", "/why 1", "/deny 1", "/deny 1", "/why 1"):
            reply = await host.channel.ask(command, sender=READER)
            labels = [one.label for one in host.channel.answers[-1].buttons]
            said = ("I see.", "line", "tea")
            english += [
                f"{command}: {text}" for text in (reply, *labels) if untranslated_words(text, said)
            ]
    assert not english, "\n".join(english)
    read = str(model.requests)
    assert "Not run yet: call 1 waits for the user's yes" in read
    assert not any(map(is_fullwidth, read))


async def test_who_may_not_do_something_is_told_so_in_their_language(
    tmp_path, tmp_path_factory, monkeypatch
):
    write_catalogue(tmp_path_factory.mktemp("locale"), monkeypatch)
    async with session_host(tmp_path, ScriptedModel([]), metered=True) as host:
        await host.channel.ask("/memory add I prefer green tea", sender=READER)
        for command in (
            *("/memory clear", "/memory export", "/memory edit 1 Friday", "/memory share 1"),
            *(
                "/problem new Taxes",
                "/schedules quiet off",
                "/budget all",
                "/budget set each 1$ day",
            ),
            *("/skills", "/reference share x", "/reference set deadline Friday"),
        ):
            sent = await host.channel.send(command, sender=BOB, private=False, role="member")
            reply = await host.channel.wait_for_answer(sent)
            assert not untranslated_words(reply, (*SAID, "Bob")), reply
