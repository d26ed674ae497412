"""What search engines give, and how the program copes with those that refuse or misbehave."""

from __future__ import annotations

import json
import sys

import pytest
from odd_server import odd_server, reply

from bot.agent.web.search_engines import DdgsEngine, SearchHit, searxng, tavily
from bot.core.errors import FetchFailed

HIT = SearchHit("Ferry times", "https://ferry.example/", "Leaves at nine.", "2026-05-06")
FOUND = {"title": HIT.title, "url": HIT.address, "content": "Leaves\nat nine."}
ODD = [None, 7, {}, {"url": "javascript:alert(1)"}, {"url": "http://a b"}, {"url": 5}]


@pytest.fixture
async def server():
    async with odd_server() as running:
        yield running


@pytest.mark.parametrize(
    ("engine", "path", "answer"),
    [
        (searxng, "/search?q=a+%26+b&format=json", {"publishedDate": HIT.date}),
        (lambda at: tavily("my-key", at), "/", {"published_date": HIT.date}),
    ],
    ids=["searxng", "tavily"],
)
async def test_an_engine_gives_hits_of_which_odd_ones_are_left_out(server, engine, path, answer):
    found = {"results": [*ODD, FOUND | answer, *[FOUND] * 9]}
    server.answers[path] = reply(json.dumps(found), "application/json")
    hits = await engine(server.url("/", host="127.0.0.1")).search("a & b", 3)
    assert hits[0] == HIT
    assert len(hits) == 3


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(status="401 Unauthorized"), "check TAPEBOT_WEB_SEARCH_KEY"),
        (reply(status="429 Too Many Requests"), "allows no more searches now"),
        (reply(status="302 Found", Location="http://127.0.0.1/"), "answered with the status 302"),
        (reply("[" * 100_000, "application/json"), "is no JSON"),
        (b"no http\r\n\r\n", "its answer is broken"),
    ],
    ids=["key", "too many", "redirect", "no JSON", "no HTTP"],
)
async def test_an_engine_that_refuses_or_misbehaves_is_told_without_the_key(server, answer, why):
    server.answers["/t"] = answer
    with pytest.raises(FetchFailed, match=why) as caught:
        await tavily("my-key", server.url("/t", host="127.0.0.1")).search("ferry", 5)
    assert "my-key" not in str(caught.value)


async def test_public_engines_are_asked_in_a_process_without_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEBOT_MODEL_API_KEY", "sk-secret")
    path = tmp_path / "program.py"
    path.write_text(
        "import json, os, sys\nasked = json.load(sys.stdin)['query']\n"
        "hit = {'title': asked, 'href': 'https://a.example', 'body': ' '.join(os.environ)}\n"
        "print(json.dumps({'hits': [hit] * 9}))"
    )
    found = await DdgsEngine([sys.executable, "-I", str(path)]).search("ferry", 4)
    assert len(found) == 4
    assert (found[0].title, found[0].address) == ("ferry", "https://a.example")
    assert "TAPEBOT" not in found[0].text
