"""Every word that a command says is in the language of whoever gave it."""

from dataclasses import replace

import pytest
from acting import fetching_tool, obeying, writing_tool

from bot.testing.fake_channel import ADA
from bot.testing.host import session_host
from bot.testing.scripted_model import ScriptedModel
from tests.fullwidth_language import LANGUAGE, is_fullwidth, untranslated_words, write_catalogue

pytestmark = pytest.mark.slow  # the catalogue is made of every message of the program
READER = replace(ADA, language=LANGUAGE)
SAID = tuple(
    "I prefer green tea, Ada, Taxes, Friday, noon, letters, home, call mom, Which form, /memory add, "
    "/memory edit, likes, general, ask, draft, drafts, open, deadline".split(", ")
)
"""What the person says in the commands, their name, and what memory records of it."""

COMMANDS = """
/help: -
/start: -
/stop: -
/retry: -
/status: -
/nothing: -
/memory: - | nothing | add I prefer green tea | add I prefer green tea | - | 1 | why | why 1
/memory: why 99 | edit | edit 1 I prefer green tea, letters home | edit 99 I prefer green tea
/memory: why 1 | why 2 | search | search green | search nowhere | beliefs | why p1 | drop p1
/memory: pending | accept | accept 1 | drop all | history | share 2 | unshare w1 | unshare w9
/memory: import | import nothing | pause | - | resume | undo | undo | export | clear | clear yes
/memory: clear | forget | forget 99 | forget w1 | forget nowhere | forget green
/memory: forget only 9 1 | forget yes 9 | forget no 9 | add I prefer green tea
/problem: - | nothing | new | new Taxes | new Taxes | new general | - | show | note
/problem: note ask Which form | note draft letters home | show | priority | priority Taxes 9
/problem: switch | switch nowhere | switch general | show Taxes | pause Taxes | background Taxes
/problem: - | switch Taxes | switch Taxes | private | done | done | list done | switch Taxes
/reference: - | deadline | set | set deadline Friday | deadline | set deadline Friday noon
/reference: versions deadline | versions nowhere | rollback deadline | rollback deadline 1
/reference: rollback deadline 9 | share deadline | - | unshare deadline | remove deadline
/reference: remove deadline
/remind: - | sometime call mom | every Monday at 8 call mom | every 3 days at 9 call mom
/remind: in 20 minutes call mom | "0 8 * * 1-5" call mom | "0 8 L * *" call mom
/schedules: - | nothing | pause 1 | pause 1 | resume 1 | resume 1 | change 1
/schedules: change 1 every 2 weeks on Friday at 7 | snooze 1 x | snooze 1 10 | quiet
/schedules: quiet 22:00-07:00 | quiet never | - | quiet off | done 1 | done 3 | delete 1
/schedules: delete 1 | delete 99 | task | task every 2 minutes call mom
/schedules: task every day at 8 call mom | history
/timezone: - | Nowhere/Atall | Asia/Tokyo
/model: -
/tape: - | nothing | anchors | anchors nowhere | search | search tea | search nowhere
/budget: - | nothing | all | set | set everyone 5$ day | set everyone 5$ week
/budget: set someone 5$ day | set each 200k month | rate 3 | - | all | off nobody | off everyone
/budget: off everyone
/status: -
/approvals: -
/approve: - | 9
/deny: 9
/why: - | 9
/language: - | klingon
/files: - | nothing | keep | keep letters.txt | send | send letters.txt | find nowhere
/files: undo letters.txt | delete letters.txt
/skills: - | add | add nowhere | add /nowhere | letters | allow letters | a b c d
/skills: remove letters
"""
"""Forms of each command; a dash is the command alone."""


async def english_in(host, commands, said, **more) -> list[str]:
    """Give commands; return the untranslated words in what is told and on the buttons."""
    found = []
    for command in commands:
        sent = await host.channel.send(command, **more)
        texts = [await host.channel.wait_for_answer(sent)]
        texts += [one.label for one in host.channel.answers[-1].buttons]
        own = (*said, command, *command.split())
        found += [f"{command}: {words}" for one in texts if (words := untranslated_words(one, own))]
    return found


@pytest.fixture
def catalogue(tmp_path_factory, monkeypatch):
    write_catalogue(tmp_path_factory.mktemp("locale"), monkeypatch)


@pytest.mark.usefixtures("catalogue")
async def test_every_word_that_a_command_says_is_in_the_chosen_language(tmp_path):
    rows = [row.partition(": ") for row in COMMANDS.strip().splitlines()]
    given = [
        name if form == "-" else f"{name} {form}"
        for name, _, forms in rows
        for form in forms.split(" | ")
    ]
    async with session_host(tmp_path, ScriptedModel([]), metered=True, files_mb=1) as host:
        assert await english_in(host, given, SAID, sender=READER) == []


@pytest.mark.usefixtures("catalogue")
async def test_a_call_is_asked_about_in_the_persons_language_and_told_to_the_model_in_english(
    tmp_path,
):
    model = ScriptedModel(obeying(("page_read", "x"), ("memory_save", "x")))
    tools = [writing_tool(tmp_path / "acts.txt"), fetching_tool("write tea")]
    given = ("write tea", "/approvals", "/why 1", "/deny 1", "/deny 1", "/why 1")
    async with session_host(tmp_path, model, tools=tools) as host:
        assert await english_in(host, given, ("I see.", "line", "tea"), sender=READER) == []
    read = str(model.requests)
    assert "Not run yet: call 1 waits for the user's yes" in read
    assert not any(map(is_fullwidth, read))
