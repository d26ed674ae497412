"""The site beside what one starts the program for: what is printed, and what goes on when it cannot be."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pexpect
import pytest
from preloaded import environment
from terminals import SECONDS, at_terminal, end
from websockets.sync.client import connect

from testkit.ports import kept_port

pytestmark = [pytest.mark.slow, pytest.mark.family("starts")]


@pytest.fixture
def port() -> Iterator[int]:
    with kept_port() as port:
        yield port


@pytest.fixture
def terminal(tmp_path):
    started = []

    def start(**settings: str) -> pexpect.spawn:
        child = at_terminal(tmp_path, environment(tmp_path, TAPEBOT_MODEL="offline", **settings))
        started.append(child)
        return child

    yield start
    for child in started:
        end(child)


def answers(child: pexpect.spawn) -> None:
    child.send("/status\r")
    child.expect("notebook")
    child.expect("you>")


def leave(child: pexpect.spawn) -> None:
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_at_a_terminal_a_link_is_printed_that_logs_in_once_and_the_terminal_goes_on(
    tmp_path, terminal, port
):
    url = f"http://127.0.0.1:{port}"
    child = terminal(TAPEBOT_WEB_LISTEN=url.removeprefix("http://"))
    child.expect(rf"Web: {re.escape(url)} .*({re.escape(url)}/enter#[\w-]{{43}})\b")
    secret = child.match.group(1).partition("#")[2]
    child.expect("you>")
    with httpx.Client(base_url=url, timeout=SECONDS) as browser:
        assert browser.post("/enter", data={"token": secret}).status_code == 303
        assert browser.get("/").status_code == 200
        # An open socket keeps nobody waiting at the end.
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        headers = {"Cookie": cookies, "Origin": url}
        address = f"{url.replace('http', 'ws')}/chat/socket"
        with connect(address, additional_headers=headers, open_timeout=SECONDS) as one:
            assert '"welcome"' in str(one.recv(timeout=SECONDS))
            answers(child)
            used = httpx.post(f"{url}/enter", data={"token": secret}, timeout=SECONDS)
            assert used.status_code == 403
            child.kill(15)
            child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    logs = "".join(path.read_text() for path in (tmp_path / "home" / "logs").iterdir())
    assert secret not in logs


def test_where_any_port_will_do_all_links_name_the_real_one(tmp_path, terminal):
    child = terminal(TAPEBOT_WEB_LISTEN="127.0.0.1:0")
    child.expect(r"Web: (http://127\.0\.0\.1:[1-9]\d*) .*/enter#([\w-]{43})\b")
    url, secret = child.match.groups()
    child.expect("you>")
    assert httpx.post(f"{url}/enter", data={"token": secret}, timeout=SECONDS).status_code == 303
    link = subprocess.run(
        [sys.executable, "-m", "bot", "web", "link"],
        env=environment(tmp_path, TAPEBOT_WEB_LISTEN="127.0.0.1:0"),
        capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    assert f"{url}/enter#" in link.stdout
    child.sendline("/login")
    child.expect_exact(f"{url}/login")
    leave(child)
