"""What a browser may do with a page, under which names the site is asked, and how much at once."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack

import anyio
import httpx
import pytest
from access_rig import HTML, HTTPS, URL, open_site
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import Receive, Scope, Send

from bot.inspector import server as serving
from bot.inspector.access.middleware import CSP, LARGEST, REQUESTS, SecurityMiddleware
from bot.inspector.access.origin import csrf_token
from bot.inspector.access.rate_limits import CHANGES, READS, RateLimiter


@pytest.fixture
async def site(tmp_path):
    async with open_site(tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    "path", ["/login", "/enter", "/account", "/probe", "/nothing", "/api/v1/nothing"]
)
async def test_every_answer_says_what_a_browser_may_do_with_it(site, path):
    browser = await site.owner() if path == "/account" else await site.browser()
    headers = (await browser.get(path, headers=HTML)).headers
    assert headers["content-security-policy"] == CSP
    assert "unsafe" not in CSP
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "camera=()" in headers["permissions-policy"]
    assert headers["referrer-policy"] in ("same-origin", "no-referrer")
    assert "strict-transport-security" not in headers


async def test_static_files_may_be_kept_and_https_stays_https(tmp_path):
    async with open_site(tmp_path, url=HTTPS) as site:
        browser = await site.browser()
        kept = await browser.get("/static/login.css")
        assert "no-store" not in kept.headers.get("cache-control", "")
        page = await browser.get("/login", headers=HTML)
        assert "max-age=31536000" in page.headers["strict-transport-security"]


async def test_pages_of_login_hold_no_script_or_style_of_their_own(site):
    browser = await site.owner()
    stranger = await site.browser()
    pages = [
        await browser.get("/account", headers=HTML),
        await stranger.get("/login", headers=HTML),
        await stranger.get("/enter", headers=HTML),
        await stranger.post("/enter", data={"token": "x"}, headers=HTML),
    ]
    for page in pages:
        assert page.text.count("<h1") == 1
        assert " style=" not in page.text
        assert "<style" not in page.text
        scripts = re.findall(r"<script[^>]*>", page.text)
        assert all('src="/static/' in script for script in scripts)
        assert not re.search(r"<[^>]*\son\w+=", page.text)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8020", 200),
        ("localhost:8020", 200),
        ("LOCALHOST:8020", 200),
        ("[::1]:8020", 200),
        ("localhost", 421),
        ("localhost:8021", 421),
        ("evil.example:8020", 421),
        ("127.0.0.1.evil.example:8020", 421),
        ("127.0.0.1:8020@evil.example", 421),
        ("127.0.0.1:8020:8020", 421),
        ("", 421),
        ("127.0.0.1:٨٠٢٠", 421),
    ],
    ids=range(12),
)
async def test_the_site_answers_to_its_own_names_alone(site, host, status):
    browser = await site.browser()
    answer = await browser.get("/login", headers={"Host": host.encode()})
    assert answer.status_code == status
    assert status == 200 or URL in answer.json()["detail"]


async def test_of_two_names_in_one_request_neither_counts(site):
    browser = await site.browser()
    both = [("Host", "127.0.0.1:8020"), ("Host", "evil.example")]
    assert (await browser.get("/login", headers=both)).status_code == 421


async def test_behind_a_proxy_it_answers_to_its_public_name(tmp_path):
    async with open_site(tmp_path, url=HTTPS) as site:
        browser = await site.browser()
        for host, status in (
            ("bot.example.org", 200),
            ("bot.example.org:443", 200),
            ("bot.example.org:80", 421),
            ("example.org", 421),
        ):
            assert (await browser.get("/login", headers={"Host": host})).status_code == status
        opened = await site.logins.log_in("local", "Ada")
        browser = await site.browser(opened)
        browser.headers["X-CSRF-Token"] = opened.csrf
        for origin, status in ((HTTPS, 200), ("http://bot.example.org", 403)):
            answer = await browser.post("/probe", headers={"Origin": origin})
            assert answer.status_code == status


async def test_a_route_may_allow_less_but_is_never_without():
    async def app(scope, receive, send):
        own = {"Content-Security-Policy": "default-src 'none'; sandbox"}
        response = HTMLResponse("x", headers=own if scope["path"] == "/file" else None)
        await response(scope, receive, send)

    transport = httpx.ASGITransport(SecurityMiddleware(app, URL))
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        file = await client.get("/file")
        assert file.headers["content-security-policy"] == "default-src 'none'; sandbox"
        page = await client.get("/page")
        assert page.headers["content-security-policy"] == CSP
        assert page.headers["referrer-policy"] == "same-origin"


async def test_who_asks_too_much_is_told_when_to_come_again_and_nobody_else_is(site):
    one = await site.browser(await site.logins.log_in("local", "Ada"))
    other = await site.browser(await site.logins.log_in("telegram.42", "Ada"))
    for _ in range(READS):
        assert (await one.get("/probe")).status_code == 200
    refused = await one.get("/probe")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert (await other.get("/probe")).status_code == 200
    site.clock.advance(1)
    assert (await one.get("/probe")).status_code == 200


def test_changes_have_a_bound_of_their_own_and_counting_is_bounded():
    rates = RateLimiter()
    for number in range(10_000):
        assert rates.take(f"v{number}", 0.0, changes=False) == 0
    assert len(rates._left) == 2_000
    assert [rates.take("a", 0.0, changes=True) for _ in range(CHANGES)] == [0.0] * CHANGES
    assert rates.take("a", 0.0, changes=True) == pytest.approx(60 / CHANGES)
    assert rates.take("a", 0.0, changes=False) == 0
    assert rates.take("a", 60.0, changes=True) == 0


async def test_requests_beyond_the_bound_wait_and_are_then_told_to_come_again(monkeypatch):
    monkeypatch.setattr("bot.inspector.access.middleware._WAIT", 0.05)
    held, running = anyio.Event(), 0

    async def app(scope, receive, send):
        nonlocal running
        running += 1
        await held.wait()
        await PlainTextResponse("done")(scope, receive, send)

    transport = httpx.ASGITransport(SecurityMiddleware(app, URL))
    told: list[int] = []
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:

        async def ask() -> None:
            told.append((await client.get("/")).status_code)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for _ in range(REQUESTS):
                    tasks.start_soon(ask)
                while running < REQUESTS:
                    await anyio.lowlevel.checkpoint()
                refused = await client.get("/")
                assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
                held.set()
        assert told == [200] * REQUESTS
        assert (await client.get("/")).status_code == 200


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded", ""])
async def test_a_long_body_is_refused_before_it_is_read(site, kind):
    browser = await site.browser()
    headers = {"Content-Type": kind} if kind else {}
    read = 0

    async def body():
        nonlocal read
        read += 1
        yield b"x"

    long = {**headers, "Content-Length": str(LARGEST + 1)}
    refused = await browser.post("/login", content=body(), headers=long)
    assert (refused.status_code, read) == (413, 0)
    refused = await browser.post("/login", content=body(), headers=headers)
    assert (refused.status_code, read) == (411, 0)


@pytest.mark.parametrize(
    "kind", ["image/png", "text/plain", "application/json", "application/x-www-form-urlencoded"]
)
async def test_files_come_in_as_long_as_their_route_takes_them(site, kind):
    browser = await site.owner()
    content, headers = b"x" * 2_000_000, {"Content-Type": kind}
    sent = await browser.post("/chat/uploads", content=content, headers=headers)
    assert sent.json() == len(content)
    del browser.headers["X-CSRF-Token"]
    csrf = browser.headers["Cookie"].partition("=")[2]
    # Nothing of it is read to find a form's field in it.
    content = f"csrf={csrf_token(csrf)}&x=".encode() + content
    sent = await browser.post("/chat/uploads", content=content, headers=headers)
    assert sent.json() == 0


async def test_three_hundred_requests_that_are_never_finished_shut_out_nobody():
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("here")(scope, receive, send)

    bound = serving.bind("127.0.0.1:0")
    port = bound.getsockname()[1]
    async with anyio.create_task_group() as tasks, AsyncExitStack() as held:
        tasks.start_soon(serving.serve, app, bound)
        for _ in range(300):
            stream = await held.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            await stream.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        async with httpx.AsyncClient() as client:
            assert (await client.get(f"http://127.0.0.1:{port}/")).text == "here"
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize(
    "path", ["/login", "/enter", "/api/v1/commands", "/account/tokens", "/mcp"]
)
async def test_visitors_are_answered_while_hundreds_have_sent_half_a_request(tmp_path, path):
    half = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nc".encode()
    bound = serving.bind("127.0.0.1:0")
    port = bound.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    async with (
        open_site(tmp_path, url=url) as site,
        anyio.create_task_group() as tasks,
        AsyncExitStack() as held,
    ):
        tasks.start_soon(serving.serve, site.app, bound)
        for _ in range(serving.CONNECTIONS + 40):
            stream = await held.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            await stream.send(half.replace(b"127.0.0.1", f"127.0.0.1:{port}".encode()))
        async with httpx.AsyncClient(base_url=url) as visitor:
            with anyio.fail_after(8):
                assert (await visitor.get("/login")).status_code == 200
                wrong = await visitor.post(
                    "/account/tokens", data={"name": "x"}, headers={"Accept": "text/html"}
                )
            assert wrong.status_code in (303, 401)
        tasks.cancel_scope.cancel()
