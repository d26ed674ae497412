"""The OpenAPI document is true: what it says may be asked is answered as it says, and never with 5xx."""

from __future__ import annotations

import threading

import anyio
import hypothesis
import pytest
import schemathesis
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tape_server_rig import TAPE, serving

from bot.tape.entries import anchor, message

pytestmark = pytest.mark.slow

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server in a thread: what asks it here has no event loop."""
    home = tmp_path_factory.mktemp("home")
    ready, stop, found = threading.Event(), threading.Event(), []

    async def serve():
        async with serving(home) as rig:
            await rig.store.create_tape(TAPE)
            await rig.store.append_many(TAPE, [message("user", "tea"), anchor("here")])
            found.append((rig.url, rig.tokens.add("fuzz", "admin", ["*"])))
            ready.set()
            await anyio.to_thread.run_sync(stop.wait)

    thread = threading.Thread(target=anyio.run, args=[serve])
    thread.start()
    assert ready.wait(20)
    yield found[0]
    stop.set()
    thread.join(20)


def operations(url):
    # What is followed has no end; its answers are tested by hand.
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for result in schema.exclude(path="/v1/tapes/follow").get_all_operations():
        yield result.ok()


def test_whatever_is_asked_is_answered_as_the_document_says(server):
    url, token = server
    asked, statuses = 0, set()
    for operation in operations(url):

        @hypothesis.settings(
            max_examples=12,
            database=None,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        @hypothesis.given(case=operation.as_strategy())
        def ask(case):
            nonlocal asked
            asked += 1
            answer = case.call(headers={"Authorization": f"Bearer {token}"})
            case.validate_response(answer, checks=CHECKS)
            statuses.add(answer.status_code)

        ask()
    assert asked > 150
    assert {200, 404} <= statuses
