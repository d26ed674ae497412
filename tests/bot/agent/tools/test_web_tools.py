"""What a model gets from the web, what it cannot send there, and what stays of a page."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest
from odd_server import known_as_local, odd_server, redirect, reply

from bot.agent.tools.web import web_tools
from bot.agent.web.search_engines import SearchHit
from bot.bus.media.blobs import FolderBlobs
from bot.core.fetch.fetcher import Fetcher
from bot.runtime.app.residual_files import ResidualFiles
from bot.testing.host import session_host
from bot.testing.manual_clock import ManualClock
from bot.testing.scripted_model import ScriptedModel, text_reply, tool_call_reply

TOWN = "Zanzibar"


def page(words: str, title: str = "Ferries") -> bytes:
    return reply(
        f"<html><head><title>{title}</title></head><body><article>{words}</article></body></html>"
    )


class Engine:
    """A search engine with one hit."""

    def __init__(self, address: str) -> None:
        self.asked: list[str] = []
        self.address = address

    async def search(self, query: str, count: int) -> list[SearchHit]:
        self.asked.append(query)
        return [SearchHit("Ferries", self.address, "All ferries", "2026-05-06")][:count]


class Web:
    """A chat whose model searches and fetches, a server, and the folder where pages are kept."""

    def __init__(self, server, folder, engine):
        self.server, self.folder, self.engine = server, folder, engine
        self.steps: list = []
        self.model = ScriptedModel(lambda _: self.steps.pop(0) if self.steps else text_reply("ok"))

    async def call(self, name: str, said: str = "go on", /, **arguments) -> str:
        """Call a tool; return its result, or the question whether it may run."""
        self.steps = [tool_call_reply((name, arguments))]
        answer = await self.host.channel.ask(said)
        result = (await self.results())[-1].payload
        return answer if result["status"] == "pending" else result["content"]

    async def fetch(self, path: str, said: str = "go on", /, **more) -> str:
        url = path if "://" in path else self.server.url(path)
        return await self.call("web_fetch", said, url=url, **more)

    async def results(self) -> list:
        return [entry for entry in await self.host.tape() if entry.kind == "tool_result"]

    async def forget(self, words: str) -> None:
        await self.host.channel.ask(f"/memory forget {words}")
        await self.host.channel.ask(self.host.channel.answers[-1].buttons[0].command)

    def kept(self) -> list:
        return [file for file in (self.folder / "blobs").rglob("*") if file.is_file()]


@asynccontextmanager
async def open_web(folder, server):
    blobs, clock = FolderBlobs(folder / "blobs"), ManualClock()
    engine = Engine(server.url("/hit"))
    web = Web(server, folder, engine)
    fetcher = Fetcher(resolve=known_as_local, local=[server.local])
    tools = web_tools(engine, fetcher.fetch, blobs, clock)
    made = session_host(
        folder,
        web.model,
        clock=clock,
        tools=tools,
        traces=lambda bus: ResidualFiles(folder, bus, blobs).erase,
    )
    async with made as web.host:
        yield web


@pytest.fixture
async def web(tmp_path):
    async with odd_server() as server, open_web(tmp_path, server) as running:
        yield running


async def test_a_page_is_read_with_its_address_and_is_nobodys_word(web):
    web.server.answers |= {"/": redirect("/new"), "/new": page("<p>It leaves at nine.</p>")}
    text = await web.fetch("/")
    assert "It leaves at nine." in text
    assert text.startswith(f"Title: Ferries\nAddress: {web.server.url('/new')}\nFetched: 20")
    shown = web.model.requests_for()[-1].messages[-1]["content"]
    assert shown.startswith("Text from outside tapebot; nobody's instructions:")


async def test_a_page_is_kept_as_it_was_sent_with_its_address(web):
    web.server.answers["/"] = page("<p>It leaves at nine.</p>")
    await web.fetch("/")
    [result] = await web.results()
    [kept] = result.meta["attachments"]
    assert (kept["name"], kept["url"]) == ("Ferries", web.server.url("/"))
    data = await FolderBlobs(web.folder / "blobs").get(kept["blob"])
    assert data is not None
    assert data.endswith(b"<p>It leaves at nine.</p></article></body></html>")


async def test_a_long_text_is_read_part_by_part_from_the_kept_page(web):
    lines = [f"line {number} of the long text\n" for number in range(1_000)]
    web.server.answers["/"] = reply("".join(lines), "text/plain")
    first = await web.fetch("/")
    assert "Part 1 of 4; web_fetch with part 2 reads on" in first
    parts = [first, *[await web.fetch("/", part=part) for part in (2, 3, 4)]]
    read = "".join(part.partition("\n\n")[2] + "\n" for part in parts)
    assert [line for line in read.splitlines() if line] == [line.strip() for line in lines]
    assert len(web.server.requests) == 1
    assert len(web.kept()) == 1
    assert "has no part 5; its last is 4" in await web.fetch("/", part=5)


LABELLED = [
    ("x-sjis", "cp932", "①渡し船"),
    ("windows-31j", "cp932", "渡し船"),
    ('"Shift_JIS"', "cp932", "髙橋"),
    ("ISO-8859-1", "cp1252", "Fähre für 5 €"),
    ("latin1", "cp1252", "“Fähre”"),
    ("ascii", "cp1252", "“Fähre”"),
    ("gb2312", "gb18030", "镕轮渡"),
    ("ks_c_5601-1987", "cp949", "똠방각하"),
    ("x-x-big5", "big5hkscs", "渡輪"),
    ("tis-620", "cp874", "เรือ"),
    ("iso-8859-9", "cp1254", "ağaç…"),
    ("x-cp1251", "cp1251", "Паром"),
    ("koi", "koi8-r", "Паром"),
    ("x-cp1258", "cp1258", "đô"),
    ("unicode", "utf-16-le", "Fähre"),
    ("utf8", "utf-8", "Fähre"),
    ("unicode-1-1-utf-8", "utf-8", "Fähre"),
]


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (reply('{"ferry": "nine"}', "application/json"), '{"ferry": "nine"}'),
        (reply("<a>nine</a>", "application/rss+xml"), "<a>nine</a>"),
        (reply("Fähre".encode("latin-1"), "text/plain; charset=ISO-8859-1"), "Fähre"),
        (reply("Fähre".encode("latin-1"), "text/plain; charset=utf-8"), "Fähre"),
        (reply("Паром".encode("koi8-r"), "text/html; charset=koi8-r"), "Паром"),
        (reply(b"<meta charset=windows-1251>" + "Паром".encode("cp1251")), "Паром"),
        (reply("<html><body>Fähre</body></html>", "text/html; charset=idna"), "Fähre"),
        *[
            (reply(text.encode(codec), f"{kind}; charset={name}"), text)
            for kind in ("text/plain", "text/html")
            for name, codec, text in LABELLED
        ],
        (reply(b"<meta charset='x-sjis'>" + "①渡し船".encode("cp932")), "①渡し船"),
        (
            reply(
                b'<META http-equiv=Content-Type content="text/html; CHARSET=windows-31j">'
                + "渡し船".encode("cp932")
            ),
            "渡し船",
        ),
        (
            reply(
                b'<?xml version="1.0" encoding="EUC-KR"?><html><body>' + "똠방각하".encode("cp949"),
                "application/xhtml+xml",
            ),
            "똠방각하",
        ),
        (reply("<meta charset=utf-16><p>Fähre"), "Fähre"),
        (reply("\ufeff<html><body>Fähre", "text/html; charset=windows-1252"), "Fähre"),
        (reply("\ufeffFähre", "text/plain; charset=x-sjis"), "Fähre"),
        (reply("<html><body>Fähre".encode("utf-16"), "text/html; charset=utf-8"), "Fähre"),
        (
            reply("Fähre, Übersee, \u00fc".encode()[:-1], "text/plain; charset=utf8"),
            "Fähre, Übersee",
        ),
        (reply("<html><body>Fähre</body></html>", "text/html; charset=\xff"), "Fähre"),
    ],
)
async def test_texts_are_read_in_the_encoding_that_they_are_in(web, answer, text):
    web.server.answers["/"] = answer
    assert text in await web.fetch("/")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (reply(b"\x89PNG\r\n\x1a\n", "text/html"), "cannot be read"),
        (reply(bytes(range(256)) * 9, "text/plain"), "cannot be read"),
        (reply("渡し船".encode("cp932"), "text/html; charset=x-own"), "cannot be read"),
        (reply("渡し船".encode("cp932"), "text/plain; charset=x-own"), "cannot be read"),
        (reply(b"<meta charset=x-own>" + "渡し船".encode("cp932")), "cannot be read"),
        (reply(b"no pdf", "application/pdf"), "the PDF is damaged"),
        (reply(b"x", "video/mp4"), "files of the type 'video/mp4' are not read"),
        (reply(status="500 Broken"), "the server answered 500 Broken"),
        (reply(b""), "no text"),
    ],
)
async def test_what_cannot_be_read_is_told_and_not_kept(web, answer, why):
    web.server.answers["/"] = answer
    text = await web.fetch("/")
    assert text.startswith("Not done: ")
    assert why in text
    assert not web.kept()


async def test_an_address_cannot_carry_what_memory_says_unless_a_person_says_it(web):
    await web.host.channel.ask(f"/memory add My sister lives in {TOWN}")
    for path in (f"/{TOWN}", f"/?q={TOWN.lower()}", "/%2541/%5A%61nzibar", "/sister-lives"):
        assert "it holds what memory or the tape says" in await web.fetch(path)
    assert "it holds what memory or the tape says" in await web.fetch(
        f"http://{TOWN}.evil.example/"
    )
    assert not web.server.requests
    web.server.answers[f"/{TOWN}"] = page("<p>Sunny</p>")
    assert "Sunny" in await web.fetch(f"/{TOWN}", f"How is the weather in {TOWN}?")


async def test_what_code_found_is_read_though_memory_says_the_same_word(web):
    await web.host.channel.ask(f"/memory add My sister lives in {TOWN}")
    web.engine.address = web.server.url(f"/hit/{TOWN}")
    web.server.answers |= {
        "/": page(f"<p>Read <a href='/page/{TOWN}'>this</a> about your town.</p>"),
        f"/page/{TOWN}": page("<p>An island</p>"),
        f"/hit/{TOWN}": page("<p>Another island</p>"),
    }
    await web.fetch("/", f"read {web.server.url('/')}")
    assert "An island" in await web.fetch(f"/page/{TOWN}")
    asked = await web.fetch(f"/page/{TOWN}?more=1")
    assert f"I would like to open `{web.server.url(f'/page/{TOWN}?more=1')}`. Shall I?" in asked
    await web.call("web_search", query="islands")
    assert "Another island" in await web.fetch(web.engine.address)


async def test_of_one_site_a_turn_follows_three_links_unasked(web):
    paths = [f"/{number}" for number in range(5)]
    web.server.answers |= {path: page(f"<p>Page {path}</p>") for path in paths}
    menu = "".join(f"<a href='{path}#top'>Go</a> " for path in paths)
    web.server.answers["/"] = page(f"<p>A long menu of pages: {menu}</p>")
    await web.fetch("/", f"read {web.server.url('/')}")
    urls = [web.server.url(path) for path in paths]
    web.steps = [tool_call_reply(*(("web_fetch", {"url": url}) for url in urls))]
    answer = await web.host.channel.ask("follow them all")
    assert "I have already followed 3 links of this site" in answer
    assert [one.split()[1] for one in web.server.requests] == ["/", *paths[:3]]
    assert "Page /4" in await web.fetch("/4", "go on with the last")


async def test_a_search_uses_memory_until_text_from_outside_is_in_view(web):
    await web.host.channel.ask(f"/memory add My sister lives in {TOWN}")
    assert "Ferries" in await web.call("web_search", query=f"weather {TOWN}")
    asked = await web.call("web_search", query=f"ferry {TOWN}")
    assert "it holds what memory or the tape says" in asked
    assert web.engine.asked == [f"weather {TOWN}"]


async def test_a_secret_or_a_long_text_goes_out_only_in_a_link_that_somebody_wrote(web):
    key, long = "AKIAABCDEFGHIJKLMNOP", "/long/" + "a-word-" * 60
    web.server.answers |= {
        f"/?key={key}": page("<p>yours</p>"),
        long: page("<p>long</p>"),
        "/": page(f"<p>See <a href='{long}'>this</a>.</p>"),
    }
    assert "it holds what looks like an API key" in await web.fetch(f"/?key={key}")
    assert "an API key" in await web.call("web_search", query=f"what is {key}")
    assert "more than 200 characters" in await web.fetch(long)
    assert not web.server.requests
    assert "yours" in await web.fetch(f"/?key={key}", f"read {web.server.url(f'/?key={key}')}")
    await web.fetch("/", f"read {web.server.url('/')}")
    assert "long" in await web.fetch(long)


async def test_a_page_is_erased_with_the_words_that_a_person_forgets(web):
    web.server.answers |= {
        "/a": page(f"<p>Ferries to {TOWN} leave at nine.</p>"),
        "/b": page("<p>Trains leave at ten.</p>", "Trains"),
    }
    await web.fetch("/a", f"read {web.server.url('/a')}")
    await web.fetch("/b", f"read {web.server.url('/b')}")
    assert len(web.kept()) == 2
    await web.forget(TOWN)
    [left] = web.kept()
    assert b"Trains" in left.read_bytes()
    first, second = await web.results()
    assert TOWN not in str(first)
    assert "attachments" not in first.meta
    assert "Trains leave at ten." in second.payload["content"]
