"""The API's document is true: what it says may be asked is answered as it says, by those who may ask."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import httpx
import hypothesis
import pytest
import schemathesis
from sampling import many
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from testkit.ports import kept_port

ROOT = Path(__file__).parents[3]
SAID = (
    "My name is Ada and I prefer dark mode.\nWhat is my name?\n/problem new Taxes\n"
    "/reference set deadline Friday\n/memory add I live in Graz\n"
)
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
OPEN = {"/login", "/enter", "/health"}
"""What nobody need be logged in for: the ways in."""

SECONDS = 60

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole program, with a conversation on its tapes, and a token of its owner's."""
    folder = tmp_path_factory.mktemp("site")
    with kept_port() as port, served(folder, port) as opened:
        yield opened


@contextlib.contextmanager
def served(folder, port):
    """Run the program, after it was talked to; yield its address, and headers with a token."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    own = {"HOME": str(folder), "TAPEBOT_HOME": str(folder / "home"), "PYTHONPATH": str(ROOT)}
    environment = {**kept, **own}
    program = [sys.executable, "-m", "bot"]
    subprocess.run(
        program, input=SAID.encode(), cwd=folder, env=environment, check=True, capture_output=True
    )
    environment["TAPEBOT_WEB_LISTEN"] = f"127.0.0.1:{port}"
    with (folder / "said").open("wb") as said:
        running = subprocess.Popen(
            program, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _until_there(url, folder / "said")
        token = subprocess.run(
            [*program, "web", "token", "fuzz"],
            cwd=folder,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()[-1]
        yield url, {"Authorization": f"Bearer {token}"}
        assert running.poll() is None, (folder / "said").read_text()
        assert "Traceback" not in (folder / "said").read_text()
    finally:
        running.terminate()
        running.wait(SECONDS)


def _until_there(url, said):
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(httpx.TransportError):
            httpx.get(f"{url}/login", timeout=SECONDS)
            return
        time.sleep(0.1)
    raise TimeoutError(said.read_text())


def test_whatever_is_asked_is_answered_as_the_document_says(site):
    url, headers = site
    asked, statuses = 0, set()
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json", headers=headers)
    # What is followed answers late by nature; it has tests of its own.
    for result in schema.exclude(path="/api/v1/follow").get_all_operations():
        operation = result.ok()

        @hypothesis.settings(
            max_examples=many(12),
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def ask(case):
            nonlocal asked
            asked += 1
            if "tape" in (case.query or {}) and asked % 2:
                case.query["tape"] = "console:local"
            if isinstance(case.body, dict) and "session" in case.body and asked % 2:
                case.body["session"] = "console:local"
            answer = case.call(headers=headers, timeout=SECONDS)
            case.validate_response(answer, checks=CHECKS)
            statuses.add(answer.status_code)

        ask()
    assert asked > 12 * many(12)
    assert {200, 404, 422} <= statuses


def test_no_route_answers_whoever_is_not_logged_in(site):
    url, headers = site
    known = httpx.get(f"{url}/api/v1/openapi.json", headers=headers, timeout=SECONDS)
    document = known.json()
    pages = {"/", "/sessions", "/timeline", "/memory", "/fact", "/zones", "/turns", "/turn"}
    pages |= {"/schedules"}
    pages |= {"/problems", "/reference", "/account", "/api/v1/openapi.json"}
    pages |= {f"/chat/{what}?position=1&number=1" for what in ("files", "attachments")}
    linked = re.findall(r'href="(/[a-z]*)', httpx.get(url, headers=headers, timeout=SECONDS).text)
    routes = {("GET", path) for path in (pages | set(linked)) - OPEN}
    routes |= {
        (method.upper(), path) for path, asked in document["paths"].items() for method in asked
    }
    routes |= {("POST", "/chat/uploads?name=a.txt"), ("POST", "/logout")}
    assert len(routes) > 30
    for wrong in ({}, {"Authorization": "Bearer tape_wrong"}, {"Cookie": "tapebot=wrong"}):
        with httpx.Client(base_url=url, headers=wrong, timeout=SECONDS) as nobody:
            for method, path in sorted(routes):
                if path.startswith("/static"):
                    continue
                answer = nobody.request(method, path)
                assert answer.status_code in (401, 403), (method, path, wrong, answer.status_code)
                assert "Ada" not in answer.text
                nobody.cookies.clear()
