"""The API's document is true: what it says may be asked is answered as it says."""

from __future__ import annotations

import logging
from typing import Any

import anyio.to_thread
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

SAID = ("My name is Ada and I prefer dark mode.", "What is my name?", "/problem new Taxes",
        "/reference set deadline Friday", "/memory add I live in Graz")  # fmt: skip
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
SECONDS = 60

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def test_whatever_is_asked_is_answered_as_the_document_says(rig, caplog):
    await rig.talk("fake:1", *SAID)
    token = await rig.web.logins.login_store.make_token("local", "fuzz")
    document = (await rig.client.get("/api/v1/openapi.json")).json()
    async with rig.served() as url:
        asked, statuses = await anyio.to_thread.run_sync(ask_for_everything, document, url, token)
    assert asked > 12 * many(12)
    assert {200, 404, 422} <= statuses
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


def ask_for_everything(document: dict[str, Any], url: str, token: str) -> tuple[int, set[int]]:
    """Ask for whatever the document allows; return how often, and which statuses were answered."""
    headers = {"Authorization": f"Bearer {token}"}
    asked, statuses = 0, set()
    schema = schemathesis.openapi.from_dict(document)
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
                case.query["tape"] = "fake:1"
            if isinstance(case.body, dict) and "session" in case.body and asked % 2:
                case.body["session"] = "fake:1"
            answer = case.call(base_url=url, headers=headers, timeout=SECONDS)
            case.validate_response(answer, checks=CHECKS)
            statuses.add(answer.status_code)

        ask()
    return asked, statuses
