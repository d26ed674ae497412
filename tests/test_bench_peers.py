"""What the comparison with other assistants counts, and what its table says."""

from __future__ import annotations

import json
import re

from bench.instant_server import INSTANT
from bench.peers_processes import Peer, instant_server
from bench.peers_table import ROWS, TURNS, Samples, peers_table
from bench.prompt_cache import count_tokens

SYSTEM = {"role": "system", "content": "be kind"}


def words(text):
    return re.findall(r"\w+", text)


def asked(*texts, tools=()):
    said = [{"role": "user", "content": text} for text in texts]
    return {"messages": [SYSTEM, *said], "tools": list(tools)}


def counted(*requests):
    return count_tokens(requests, words)


def test_a_cache_serves_what_requests_have_in_common_at_their_beginning():
    first, second = asked("one two three"), asked("one two three", "four")
    alone, both = counted(first), counted(first, second)
    assert alone.uncached == alone.sent
    assert both.uncached == counted(second).sent, "the first was sent anew, the second's end alone"
    assert counted(first, first).uncached == alone.sent


def test_what_follows_a_change_is_not_served():
    changed = counted(asked("one two three", "four"), asked("one two five", "four"))
    # The names of two fields, the role, and two words of the text stand before what changed.
    assert changed.sent - changed.uncached == len(words(json.dumps(SYSTEM))) + 5


def test_tools_stand_before_all_messages():
    tool, other = {"function": {"name": "a"}}, {"function": {"name": "b"}}
    again = counted(asked("one", tools=[tool]), asked("one", tools=[other]))
    assert again.sent - again.uncached == 2, "what follows the name of the tool is sent anew"
    assert (again.tools, again.contract) == (len(words(json.dumps(tool))), 2)


def test_a_request_in_between_does_not_empty_the_cache():
    talk = asked("one two three")
    assert counted(talk, asked("other"), talk).uncached == counted(talk, asked("other")).uncached


def test_the_table_says_what_is_reached_and_why_a_peer_is_missing():
    ours, theirs = Samples(), Samples()
    for row in ROWS:
        ours.add(row.key, 1.0, 2.0, 300.0)
        theirs.add(row.key, 4.0)
    samples = {"tapebot": ours, "nanobot": theirs, "bub": Samples("it needs Python 3.12")}
    table = peers_table(samples, TURNS, ["a note"], {"nanobot": "nanobot 1"})
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["start to the first reply, ms"] == [
        2.0,
        4.0,
        None,
        0.5,
        "≤ 900, ahead of all",
        "yes",
    ]
    assert rows["turns a second, 100 sessions"][-1] == "no"
    assert rows["messages lost per kill in the middle of a turn"][0] == 101, "each loss counts"
    assert table.head[2] == "nanobot 1"
    assert table.notes == ["a note", "bub: it needs Python 3.12"]

    shorter = {row[0]: row[1:] for row in peers_table(samples, 30, [], {}).rows}
    assert shorter["tokens of 30 turns"][-2:] == ["", ""], "what is wanted is wanted of 200"


def test_the_least_code_talks_is_killed_and_knows_what_was_said(tmp_path):
    peer = Peer("least")
    with instant_server(tmp_path / "requests") as server:
        assert peer.first_reply(tmp_path / "once", server.address(INSTANT)) > 0
        home, address = tmp_path / "home", server.address("kept")
        with peer.drive(home, address) as driver:
            (turn,) = driver.ask("say", chat="one", texts=["Message 1: hello."])["turns"]
            assert turn["wall"] > 0
            driver.kill()
        with peer.drive(home, address) as driver:
            driver.ask("say", chat="one", texts=["Message 2: again."])
        first, second = server.requests("kept")
    assert second["messages"][0] == first["messages"][0]
    assert len(second["messages"]) == 3
