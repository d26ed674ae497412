"""What search engines give, and how the program copes with those that refuse or misbehave."""

from __future__ import annotations

import json
import sys

import pytest
from odd_server import odd_server, packed, reply

from bot.agent.web.search_engines import DdgsEngine, SearchHit, searxng, tavily
from bot.core.errors import FetchFailed

HIT = SearchHit("Ferry times", "https://ferry.example/", "Leaves at nine.", "2026-05-06")


@pytest.fixture
async def server():
    async with odd_server() as running:
        yield running


def as_json(value: object, **more: str) -> bytes:
    return reply(json.dumps(value), "application/json", **more)


async def test_searxng_is_asked_for_json(server):
    result = {
        "title": "Ferry  times",
        "url": HIT.address,
        "content": "Leaves\nat nine.",
        "publishedDate": "2026-05-06",
    }
    server.answers["/search?q=ferry+%26+train&format=json"] = as_json({"results": [result]})
    found = await searxng(server.url("/", host="127.0.0.1")).search("ferry & train", 5)
    assert found == [HIT]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(status="401 Unauthorized"), "check TAPEBOT_WEB_SEARCH_KEY"),
        (reply(status="429 Too Many Requests"), "allows no more searches now"),
        (reply(status="302 Found", Location="http://127.0.0.1/"), "answered with the status 302"),
        (reply(status="500 Broken"), "answered with the status 500"),
        (reply("<html>", "text/html"), "is no JSON"),
        (reply("[" * 100_000, "application/json"), "is no JSON"),
        (reply(b"[" + b" " * 3_000_000 + b"]", "application/json"), "cannot be reached, or its"),
        (reply(packed(b" " * 100), "application/json", Content_Encoding="gzip"), "its answer is"),
        (b"no http\r\n\r\n", "its answer is broken"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_an_engine_that_refuses_or_misbehaves_is_told_without_the_key(server, answer, why):
    server.answers["/t"] = answer
    with pytest.raises(FetchFailed) as caught:
        await tavily("my-key", server.url("/t", host="127.0.0.1")).search("ferry", 5)
    assert why in str(caught.value)
    assert "my-key" not in str(caught.value)


async def test_hits_that_are_none_are_left_out(server):
    odd = [None, 7, {}, {"url": "javascript:alert(1)"}, {"url": "http://a b"}, {"url": 5}]
    long = {"url": "https://a.example/", "title": "t" * 999, "content": "c" * 9_999}
    server.answers["/t"] = as_json({"results": [*odd, long, *[long] * 50]})
    found = await tavily("my-key", server.url("/t", host="127.0.0.1")).search("ferry", 3)
    assert len(found) == 3
    assert (len(found[0].title), len(found[0].text)) == (200, 500)


def engine(tmp_path, program: str, **more: float) -> DdgsEngine:
    """Return a ddgs engine that runs another program in place of the library's."""
    path = tmp_path / "program.py"
    path.write_text(f"import sys\nasked = sys.stdin.read()\n{program}")
    return DdgsEngine([sys.executable, "-I", str(path)], **more)


async def test_public_engines_are_asked_in_a_process_without_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEBOT_MODEL_API_KEY", "sk-secret")
    found = await engine(
        tmp_path,
        "import json, os\nasked = json.loads(asked)\n"
        "hit = {'title': asked['query'], 'href': 'https://a.example', 'body': ' '.join(os.environ)}\n"
        "print(json.dumps({'hits': [hit] * 9}))",
    ).search("ferry", 4)
    assert len(found) == 4
    assert (found[0].title, found[0].address) == ("ferry", "https://a.example")
    assert "TAPEBOT" not in found[0].text


async def test_a_search_that_hangs_is_ended(tmp_path):
    hanging = engine(tmp_path, "import time\nwhile True: time.sleep(1)", seconds=0.5)
    with pytest.raises(FetchFailed, match="in time; try later, or set another engine"):
        await hanging.search("ferry", 4)
