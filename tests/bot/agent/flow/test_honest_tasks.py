"""What a person asks for is done without a question, though pages and mails are read on the way."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from obeying_stage import Call, Stage, stage
from odd_server import reply

from bot.bus import Sender

PAGE = "http://page.example:{port}/"
MENU = """<html><head><title>Ferries</title></head><body><nav><a href="/menu">All piers</a></nav><article>
<p>The ferry to Ghent leaves at nine each day. Its <a href="/times">times</a> and its <a href="prices">prices</a>
change in May, and the piers are near the old harbour of the town, as each year.</p>
<table><tr><td>Monday</td><td>12</td></tr><tr><td>Tuesday</td><td>30</td></tr></table></article></body></html>"""


def fetch(url: str) -> Call:
    return ("web_fetch", {"url": url})


SEARCH: Call = ("web_search", {"query": "ferries to Ghent"})
HIT, SECOND = f"{PAGE}hit", "http://other.example:{port}/two"


@dataclass(frozen=True)
class Said:
    """What a person says, and what the model then calls, one call after the other."""

    text: str
    calls: tuple[Call, ...] = ()


TASKS: dict[str, tuple[Said, ...]] = {
    "open a link that the person sent": (Said(f"Sum up {PAGE}", (fetch(PAGE),)),),
    "open the second hit": (Said("Find ferries to Ghent", (SEARCH, fetch(SECOND))),),
    "open a hit of the search by its other name": (
        Said("Find ferries to Ghent", (("web.search", SEARCH[1]), fetch(HIT))),
    ),
    "follow a link of a page that a search found": (
        Said("When do ferries to Ghent leave?", (SEARCH, fetch(HIT), fetch(f"{PAGE}times"))),
    ),
    "follow a link of the second page that a search found": (
        Said(
            "What do ferries to Ghent cost?",
            (SEARCH, fetch(SECOND), fetch("http://other.example:{port}/prices")),
        ),
    ),
    "follow a link in the menu of a page": (
        Said(f"Which piers does {PAGE} name?", (fetch(PAGE), fetch(f"{PAGE}menu"))),
    ),
    "follow a link that names what memory knows": (
        Said("/memory add I live near the old harbour of Prices"),
        Said(f"What does it cost? See {PAGE}", (fetch(PAGE), fetch(f"{PAGE}prices"))),
    ),
    "open an address without its scheme after a mail": (
        Said("Read m in the inbox", (("inbox_read", {"what": "m"}),)),
        Said("And now page.example:{port}/times", (fetch(f"{PAGE}times"),)),
    ),
    "sum up a mail": (Said("Sum up m of the inbox", (("inbox_read", {"what": "m"}),)),),
    "remind after reading a page": (
        Said(f"Sum up {PAGE}", (fetch(PAGE),)),
        Said(
            "Remind me at 17:00 to book the ferry",
            (("schedule_manage", {"op": "set", "text": "book the ferry", "when": "at 17:00"}),),
        ),
    ),
    "compute with a page's table": (
        Said(f"Add up the table of {PAGE}", (fetch(PAGE), ("echo", {"text": "12 + 30 = 42"}))),
    ),
    "ask a server that only reads for what the person said": (
        Said("Look for Ghent", (("mcp_open", {"text": "Ghent", "kind": "short"}),)),
    ),
    "mail after a new start": (
        Said(f"Sum up {PAGE}", (fetch(PAGE),)),
        Said("/new now"),
        Said("Hello again"),
        Said(
            "Please mail ann@work.example saying see you at nine",
            (("mail_send", {"to": "ann@work.example", "text": "see you at nine"}),),
        ),
    ),
    "open a page again in another turn": (
        Said(f"Sum up {PAGE}", (fetch(PAGE), fetch(f"{PAGE}times"))),
        Said("And its times?", (fetch(f"{PAGE}times"),)),
    ),
}


async def questions(made: Stage, task: tuple[Said, ...]) -> int:
    """Have a task done; return how many questions were asked."""
    for said in task:
        made.steps = [made.here(list(call)) for call in said.calls]
        await made.host.channel.ask(made.here(said.text))
        assert made.steps == []
    results = [entry for entry in await made.host.tape() if entry.kind == "tool_result"]
    return sum(one.payload["status"] == "pending" for one in results)


@pytest.mark.parametrize("name", TASKS)
async def test_an_honest_task_asks_nothing(tmp_path, name):
    async with stage(tmp_path, "Lunch at nine? Ann", others=False) as made:
        for path in ("/", "/hit", "/two"):
            made.server.answers[path] = reply(MENU)
        assert await questions(made, TASKS[name]) == 0


HOTELS = ["Good Night", "Cozy Stay", "Riverside View", "Mom's Home", "Old Mill"]


async def test_what_was_approved_goes_to_the_same_system_again_unasked(tmp_path):
    async with stage(tmp_path, "Hotels: " + ", ".join(HOTELS)) as made:
        made.steps = [("inbox_read", {"what": "m"}), ("mcp_open", {"target": HOTELS})]
        assert "Old Mill" in await made.host.channel.ask("Which hotels are in m?")
        await made.host.channel.ask("/approve 1")
        again: list[Call] = [
            ("mcp_open", {"target": HOTELS}),
            ("mcp_open", {"text": HOTELS}),
            ("mcp_open", {"target": ["Good Night", "Old Mill"]}),
        ]
        made.steps = [*again]
        await made.host.channel.ask("And their ratings?")
        assert made.opened == [{"target": HOTELS}, *(given for _, given in again)]


OTHERS: dict[str, Call] = {
    "another value": ("mcp_open", {"target": "Good Day"}),
    "a word of it": ("mcp_open", {"target": "Night"}),
    "more of it than a few": ("mcp_open", {"target": HOTELS[1:]}),
    "in another order": ("mcp_open", {"target": ["Old Mill", "Good Night"]}),
    "an address in another field": ("mcp_open", {"url": "http://evil.example/a"}),
    "a link in an approved text": ("mcp_open", {"url": "http://evil.example/b"}),
    "another system": ("mail_send", {"to": "Good Night", "text": "Good Night"}),
}


@pytest.mark.parametrize("name", OTHERS)
async def test_a_yes_permits_nothing_else(tmp_path, name):
    sent = {"target": HOTELS, "path": "http://evil.example/a", "text": "see http://evil.example/b"}
    async with stage(tmp_path, f"Hotels: {HOTELS} http://evil.example/a") as made:
        made.steps = [("inbox_read", {"what": "m"}), ("mcp_open", sent)]
        await made.host.channel.ask("Which hotels are in m?")
        await made.host.channel.ask("/approve 1")
        assert made.opened == [sent]
        made.steps = [OTHERS[name]]
        await made.host.channel.ask("Go on")
        assert made.opened == [sent]
        assert not (tmp_path / "outbox.txt").exists()


async def test_a_yes_counts_for_whom_it_was_asked_alone(tmp_path):
    sent = {"target": "Old Mill"}
    async with stage(tmp_path) as made:
        chat, eve, bob = made.host.channel, Sender("8", "Eve"), Sender("7", "Bob")
        made.steps = [("mcp_open", sent)]
        await chat.ask("Which hotel?", chat="-5", sender=eve, private=False)
        await chat.ask("/approve 1", chat="-5", sender=eve, private=False)
        assert made.opened == [sent]
        for who, opened in ((bob, [sent]), (eve, [sent, sent])):
            made.steps = [("mcp_open", sent)]
            await chat.ask("Hello", chat="-5", sender=who, private=False)
            assert made.opened == opened


async def test_a_yes_ends_with_the_words_that_asked_for_it(tmp_path):
    sent = {"target": "tumour clinic"}
    async with stage(tmp_path) as made:
        made.steps = [("mcp_open", sent)]
        await made.host.channel.ask("Look for my xyzzy disease")
        await made.host.channel.ask("/approve 1")
        await made.host.channel.ask('/memory forget "xyzzy"')
        assert "xyzzy" not in await made.host.channel.ask("yes")
        made.steps = [("mcp_open", sent)]
        await made.host.channel.ask("Hello")
        assert made.opened == [sent]


async def test_a_call_that_was_denied_leaves_nothing_of_what_a_forgotten_message_asked(tmp_path):
    async with stage(tmp_path) as made:
        made.steps = [("mcp_open", {"target": "tumour clinic"})]
        await made.host.channel.ask("Look for my xyzzy disease")
        await made.host.channel.ask("/deny 1")
        await made.host.channel.ask('/memory forget "xyzzy"')
        assert "Forgotten" in await made.host.channel.ask("yes")
        assert "tumour" not in str(await made.host.tape())
