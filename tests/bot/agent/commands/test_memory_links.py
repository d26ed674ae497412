"""Addresses of messages: given where they lead there, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agent.commands.message_links import message_url

GROUP = "https://t.me/c/1234567890/77"
DIRECT = "https://discord.com/channels/@me/1099/2001"


@pytest.mark.parametrize(
    ("tape", "inbound", "private", "address"),
    [
        ("telegram:-1001234567890", "77", False, GROUP),
        ("telegram:-1001234567890:5", "77", False, GROUP),
        ("telegram-two:-1001234567890", "77", False, GROUP),
        # An edit has its message's id before the dot.
        ("telegram:-1001234567890", "77.e900", False, GROUP),
        ("discord:1099", "2001", True, DIRECT),
        ("discord:1099", "2001.e3", True, DIRECT),
    ],
)
def test_a_message_that_a_platform_shows_by_an_address_has_it(tape, inbound, private, address):
    assert message_url(tape, inbound, private=private) == address


@pytest.mark.parametrize(
    ("tape", "inbound", "private"),
    [
        ("telegram:4711", "77", True),
        ("telegram:-4711", "77", False),
        ("telegram:-1001234567890", "cb991", False),
        ("telegram:-1001234567890", "77.r9", False),
        ("telegram:-1001234567890", "", False),
        ("discord:1099", "2001", False),
        ("discord:1099:1100", "2001", False),
        ("discord:1099", "cb12", True),
        ("discord:1099", "r2001.7.x", True),
        ("console:local", "ab-1", True),
        ("person:telegram:4711", "77", True),
        ("", "77", True),
    ],
)
def test_what_has_no_address_or_none_that_is_known_has_no_link(tape, inbound, private):
    assert message_url(tape, inbound, private=private) is None


@given(st.text(), st.text(), st.booleans())
def test_no_names_make_it_fail(tape, inbound, private):
    message_url(tape, inbound, private=private)
    message_url(f"telegram:{tape}", inbound, private=private)
