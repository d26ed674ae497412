"""What a fetch reaches, and what hostile servers cannot make of it."""

from __future__ import annotations

import ssl
import subprocess
from itertools import count

import anyio
import pytest
from odd_server import known_as_local, odd_server, packed, redirect, reply

from bot.core.errors import FetchFailed
from bot.core.fetch.fetcher import Fetcher, FetchLimits

SMALL = FetchLimits(seconds=5, idle_seconds=0.3, bytes=100_000)


@pytest.fixture
async def server():
    async with odd_server() as running:
        yield running


@pytest.fixture
def fetcher(server):
    return Fetcher(limits=SMALL, resolve=known_as_local, local=[server.local])


async def refusal(fetcher: Fetcher, url: str, kinds: tuple[str, ...] = ("text/html",)) -> str:
    with pytest.raises(FetchFailed) as caught:
        await fetcher.fetch(url, kinds.__contains__)
    return str(caught.value)


def any_kind(_: str) -> bool:
    return True


async def test_a_page_is_fetched_with_nothing_but_its_address(server, fetcher):
    server.answers["/a?b=c"] = reply("hello", "text/html; charset=utf-8", Set_Cookie="id=1")
    server.answers["/d"] = reply("again")
    found = await fetcher.fetch(server.url("/a?b=c#part"), any_kind)
    await fetcher.fetch(server.url("/d"), any_kind)
    assert (found.data, found.content_type) == (b"hello", "text/html; charset=utf-8")
    assert found.address == server.url("/a?b=c")
    first, second = server.requests
    assert f"Host: page.example:{server.port}\r\n" in first
    assert not any(word in first + second for word in ("Cookie", "Referer", "Authorization"))


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[fd00:ec2::254]/",
        "http://10.0.0.1/",
        "http://100.64.0.1/",
        "http://0.0.0.0/",
        "http://[::]/",
        "http://[fe80::1]/",
        "http://[ff02::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[::127.0.0.1]/",
        "http://[64:ff9b::127.0.0.1]/",
        "http://[2002:7f00:1::]/",
    ],
)
async def test_no_redirect_leads_into_a_private_network(server, fetcher, target):
    server.answers["/"] = redirect(target)
    assert "not on the public internet" in await refusal(fetcher, server.url())
    assert "not on the public internet" in await refusal(Fetcher(resolve=known_as_local), target)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "host", ["2130706433", "017700000001", "0x7f000001", "0x7f.1", "127.1", "0", "127.0.0.1."]
)
async def test_an_ip_address_in_another_notation_is_refused(server, fetcher, host):
    server.answers["/"] = redirect(f"http://{host}/")
    assert "write an IP address as four numbers" in await refusal(fetcher, server.url())


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("file:///etc/passwd", "only http"),
        ("gopher://page.example/", "only http"),
        ("http://ada:pass@page.example/", "user name or password"),
        ("http://ada@page.example/", "user name or password"),
        ("http://%31%32%37.0.0.1/", "no valid address"),
        ("http://page.example\t/\x00", "no valid address"),
        ("http://0177.0.0.1/", "no valid address"),
        ("http://page.example:22/", "port 22 is not allowed"),
        ("http://page.example/" + "a" * 2_000, "more than 2,000 characters"),
    ],
)
async def test_such_addresses_are_refused_also_as_redirects(server, target, why):
    fetcher = Fetcher(resolve=public_then([]), local=[server.local])
    assert why in await refusal(fetcher, target)
    fetcher = Fetcher(resolve=known_as_local, local=[server.local])
    server.answers["/"] = b"HTTP/1.1 302 Found\r\nLocation: " + target.encode() + b"\r\n\r\n"
    if "\x00" not in target and "port" not in why:
        assert why in await refusal(fetcher, server.url())


def public_then(later: list[str]):
    """Return a resolver whose first answer is public, and every other one ``later``."""
    asked = count()

    async def resolve(_: str) -> list[str]:
        return ["8.8.8.8"] if next(asked) == 0 else later

    return resolve


async def test_a_name_with_one_private_address_is_refused(server):
    async def both(_: str) -> list[str]:
        return ["8.8.8.8", "192.168.0.1"]

    assert "not on the public internet" in await refusal(Fetcher(resolve=both), "http://a.example/")


async def test_a_name_that_changes_its_address_is_asked_once_for_each_connection(server):
    answers = [["127.0.0.1"], ["169.254.169.254"], ["127.0.0.1"]]
    asked: list[str] = []

    async def resolve(name: str) -> list[str]:
        asked.append(name)
        return answers[len(asked) - 1]

    fetcher = Fetcher(limits=SMALL, resolve=resolve, local=[server.local])
    server.answers["/"] = redirect("/again")
    assert "not on the public internet" in await refusal(fetcher, server.url())
    assert asked == ["page.example"] * 2
    assert len(server.requests) == 1


async def test_loopback_is_reached_at_the_given_port_alone(server, fetcher):
    async with odd_server() as other:
        other.answers["/"] = reply("inner")
        server.answers["/"] = redirect(other.url())
        assert "not on the public internet" in await refusal(fetcher, server.url())
        assert not other.requests


async def test_an_endless_body_ends_at_the_limit(server, fetcher):
    async def endless(send):
        await send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            await send(b"a" * 50_000)

    server.answers["/"] = endless
    assert await refusal(fetcher, server.url()) == "it is larger than 0.1 MB"


async def test_a_bomb_is_not_unpacked(server, fetcher):
    bomb = packed(b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    server.answers["/"] = reply(bomb, Content_Encoding="gzip")
    assert await refusal(fetcher, server.url()) == "it is larger than 0.1 MB"


async def test_silence_and_trickling_bytes_end_in_time(server):
    async def silent(_):
        await anyio.sleep_forever()

    async def trickle(send):
        await send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
        while True:
            await send(b"a")
            await anyio.lowlevel.checkpoint()

    server.answers |= {"/silent": silent, "/trickle": trickle}
    limits = FetchLimits(seconds=60, idle_seconds=0.2)
    fetcher = Fetcher(limits=limits, resolve=known_as_local, local=[server.local])
    assert await refusal(fetcher, server.url("/silent")) == "the server stopped sending"
    limits = FetchLimits(seconds=0.5, idle_seconds=60)
    fetcher = Fetcher(limits=limits, resolve=known_as_local, local=[server.local])
    assert await refusal(fetcher, server.url("/trickle")) == "it took longer than 0.5 seconds"


async def test_tls_checks_the_name_though_the_address_was_pinned(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=page.example".split()
    command += ["-addext", "subjectAltName=DNS:page.example", "-keyout", key, "-out", certificate]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    names: list[str] = []
    context.sni_callback = lambda _, name, __: names.append(name)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with odd_server(context) as server:
        server.answers["/"] = reply("hello")
        fetcher = Fetcher(limits=SMALL, resolve=known_as_local, local=[server.local])
        address = f"https://page.example:{server.port}/"
        assert (await fetcher.fetch(address, any_kind)).data == b"hello"
        other = f"https://other.example:{server.port}/"
        assert "certificate verify failed" in await refusal(fetcher, other)
    assert names == ["page.example", "other.example"]
