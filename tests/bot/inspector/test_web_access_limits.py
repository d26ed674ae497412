"""What a browser may do with a page, under which names the site is asked, and how much at once."""

from __future__ import annotations

from contextlib import AsyncExitStack

import anyio
import httpx
import pytest
from access_rig import HTML, HTTPS, URL, open_site

from bot.inspector import server as serving
from bot.inspector.access.middleware import CSP, LARGEST
from bot.inspector.access.rate_limits import READS


@pytest.fixture
async def site(tmp_path):
    async with open_site(tmp_path) as opened:
        yield opened


async def test_every_answer_says_what_a_browser_may_do_with_it(site):
    owner, stranger = await site.owner(), await site.browser()
    for path in ("/login", "/enter", "/account", "/probe", "/nothing", "/api/v1/nothing"):
        browser = owner if path == "/account" else stranger
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


async def test_the_site_answers_to_its_own_names_alone(site):
    browser = await site.browser()
    for host in ("127.0.0.1:8020", "localhost:8020", "LOCALHOST:8020", "[::1]:8020"):
        answer = await browser.get("/login", headers={"Host": host})
        assert answer.status_code == 200, host
    for host in ("localhost", "localhost:8021", "evil.example:8020", "", "127.0.0.1:٨٠٢٠",
                 "127.0.0.1.evil.example:8020", "127.0.0.1:8020@evil.example",
                 "127.0.0.1:8020:8020"):  # fmt: skip
        answer = await browser.get("/login", headers={"Host": host.encode()})
        assert answer.status_code == 421, host
        assert URL in answer.json()["detail"]
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
            answer = await browser.get("/login", headers={"Host": host})
            assert answer.status_code == status
        answer = await browser.get("/login")
        assert "max-age=31536000" in answer.headers["strict-transport-security"]
        browser = await site.owner()
        for origin, status in ((HTTPS, 200), ("http://bot.example.org", 403)):
            answer = await browser.post("/probe", headers={"Origin": origin})
            assert answer.status_code == status


@pytest.mark.slow
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


async def test_a_long_body_is_refused_before_it_is_read(site):
    browser = await site.browser()
    read = 0

    async def body():
        nonlocal read
        read += 1
        yield b"x"

    for kind in ("application/json", "application/x-www-form-urlencoded", ""):
        headers = {"Content-Type": kind} if kind else {}
        long = {**headers, "Content-Length": str(LARGEST + 1)}
        refused = await browser.post("/login", content=body(), headers=long)
        assert (refused.status_code, read) == (413, 0)
        refused = await browser.post("/login", content=body(), headers=headers)
        assert (refused.status_code, read) == (411, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "many"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n", 300),
        (b"POST /login HTTP/1.1\r\nHost: %b\r\nContent-Length: 100\r\n\r\nc",
         serving.CONNECTIONS + 40),
        (b"POST /mcp HTTP/1.1\r\nHost: %b\r\nContent-Length: 100\r\n\r\nc",
         serving.CONNECTIONS + 40),
    ],
    ids=["headers", "a form", "a call"],
)  # fmt: skip
async def test_three_hundred_requests_that_are_never_finished_shut_out_nobody(tmp_path, said, many):
    bound = serving.bind("127.0.0.1:0")
    port = bound.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    async with (
        open_site(tmp_path, url=url) as site,
        anyio.create_task_group() as tasks,
        AsyncExitStack() as held,
    ):
        tasks.start_soon(serving.serve, site.app, bound)
        for _ in range(many):
            stream = await held.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            await stream.send(said.replace(b"%b", f"127.0.0.1:{port}".encode()))
        async with httpx.AsyncClient(base_url=url) as visitor:
            with anyio.fail_after(20):
                assert (await visitor.get("/login")).status_code == 200
                wrong = await visitor.post("/account/tokens", data={"name": "x"}, headers=HTML)
            assert wrong.status_code in (303, 401)
        tasks.cancel_scope.cancel()
