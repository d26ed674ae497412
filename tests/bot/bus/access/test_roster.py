"""Who is let in, decided from state, settings and time alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.bus import AccessRequest, Address, Sender
from bot.bus.access.access_list import (
    CODE_RESEND_INTERVAL,
    MOST_CODES,
    MOST_PENDING,
    PAIRING_CODE_LIFETIME,
    AccessList,
    ConfiguredAccess,
    add_request,
    approve,
    parse_principal,
    principal_of,
    role_of,
    safe_name,
    with_chat,
    with_owner,
    without,
)
from bot.bus.access.codes import (
    CLAIM_CODE_LENGTH,
    PAIRING_CODE_LENGTH,
    ClaimRateLimiter,
    claim_attempt,
    is_code,
    new_code,
    same_code,
)
from bot.bus.access.messages import AccessOverview, pairing_text
from bot.testing.manual_clock import START_TIME

NOBODY = ConfiguredAccess()
OWNED = ConfiguredAccess(owners=frozenset({"telegram:1"}))
CODE = "ABCD-2345"


def private(user="9", *, channel="telegram", name="Eve", text="hello"):
    return AccessRequest(
        Address(channel, user), Sender(user, name), private=True, chat_ids=(user,), text=text
    )


def group(user="9", *, chat="-100", places=None, channel="telegram"):
    return AccessRequest(
        Address(channel, chat),
        Sender(user, "Eve"),
        private=False,
        chat_ids=(chat,) if places is None else places,
    )


@pytest.mark.parametrize("access_request", [private(), group()])
def test_an_empty_allowlist_lets_nobody_in(access_request):
    assert role_of(AccessList(), NOBODY, access_request) is None


@pytest.mark.parametrize("named", [ConfiguredAccess(owners=frozenset({"telegram:9"})), NOBODY])
def test_an_owner_may_everywhere(named):
    access_list = (
        AccessList() if named.owners else with_owner(AccessList(), "telegram:9", "Ada", START_TIME)
    )
    assert role_of(access_list, named, private()) == "owner"
    assert role_of(access_list, named, group()) == "owner"


def test_a_member_may_in_private_and_where_everybody_may_and_nowhere_else():
    named = ConfiguredAccess(allow=frozenset({"telegram:9"}))
    assert role_of(AccessList(), named, private()) == "member"
    assert role_of(AccessList(), named, group()) is None
    assert role_of(with_chat(AccessList(), "telegram:-100", START_TIME), named, group()) == "member"


@pytest.mark.parametrize("place", ["discord:5", "discord:6", "discord:7"])
def test_a_thread_is_allowed_by_itself_its_channel_and_its_server(place):
    named = ConfiguredAccess(allow=frozenset({place}))
    access_request = group(channel="discord", chat="5", places=("5", "6", "7"))
    assert role_of(AccessList(), named, access_request) == "member"


def test_whoever_may_in_a_group_may_not_in_private():
    access_list = with_chat(AccessList(), "telegram:-100", START_TIME)
    assert role_of(access_list, NOBODY, group()) == "member"
    assert role_of(access_list, NOBODY, private()) is None


def test_an_allowed_chat_of_one_platform_allows_none_of_another():
    named = ConfiguredAccess(owners=frozenset({"telegram:9"}), allow=frozenset({"telegram:5"}))
    assert role_of(AccessList(), named, group(channel="discord", chat="5")) is None
    assert role_of(AccessList(), named, private(channel="discord")) is None


def test_two_bots_of_one_platform_know_the_same_people():
    named = ConfiguredAccess(owners=frozenset({"telegram:9"}))
    assert role_of(AccessList(), named, private(channel="telegram-work")) == "owner"


@pytest.mark.parametrize("identifier", ["", " 9", "9 ", "9,1", "*", "a" * 65, "9\n", "9:1"])
def test_an_id_that_is_none_is_nobody(identifier):
    assert principal_of("telegram", identifier) is None
    access_request = replace(private(), sender=Sender(identifier, "Eve"))
    assert role_of(AccessList(), OWNED, access_request) is None
    assert add_request(AccessList(), access_request, START_TIME, CODE) == (AccessList(), None)


def test_a_name_lets_nobody_in():
    named = ConfiguredAccess(owners=frozenset({"telegram:1"}), allow=frozenset({"telegram:Eve"}))
    assert role_of(AccessList(), named, private(name="telegram:1")) is None


def test_a_stranger_gets_a_code_once_and_again_only_after_a_minute():
    access_list, request = add_request(AccessList(), private(), START_TIME, CODE)
    assert request is not None
    assert request.code == CODE
    assert add_request(access_list, private(), START_TIME + CODE_RESEND_INTERVAL / 2, "other") == (
        access_list,
        None,
    )
    _, again = add_request(access_list, private(), START_TIME + CODE_RESEND_INTERVAL, "other")
    assert again is not None
    assert again.code == CODE


def test_a_stranger_gets_three_codes_an_hour_and_no_more():
    access_list, codes, minutes = AccessList(), [], range(180)
    for minute in minutes:
        access_list, request = add_request(
            access_list, private(), START_TIME + timedelta(minutes=minute), f"code{minute}"
        )
        codes += [] if request is None or request.code in codes else [request.code]
    assert codes == [f"code{n}" for n in (0, 10, 20, 60, 70, 80, 120, 130, 140)]
    assert len(access_list.requests) <= MOST_CODES


def test_no_crowd_of_strangers_makes_the_list_grow():
    access_list = AccessList()
    for number in range(500):
        access_list, _ = add_request(access_list, private(str(number)), START_TIME, f"code{number}")
    assert len(access_list.requests) == MOST_PENDING
    later = START_TIME + PAIRING_CODE_LIFETIME
    access_list, request = add_request(access_list, private("late"), later, "fresh")
    assert request is not None
    assert access_list.pending(later) == [request]


def test_a_code_is_good_for_ten_minutes_and_for_whom_it_was_made():
    access_list, _ = add_request(AccessList(), private(), START_TIME, CODE)
    assert approve(access_list, CODE, START_TIME + PAIRING_CODE_LIFETIME) is None
    assert approve(access_list, "ABCD-2346", START_TIME) is None
    found = approve(
        access_list, "abcd2345", START_TIME + PAIRING_CODE_LIFETIME - timedelta(seconds=1)
    )
    assert found is not None
    assert role_of(found[0], NOBODY, private()) == "member"
    assert role_of(found[0], NOBODY, private("8")) is None


def test_a_clock_that_is_put_back_makes_no_code_good_for_longer():
    access_list, _ = add_request(AccessList(), private(), START_TIME, CODE)
    assert approve(access_list, CODE, START_TIME - PAIRING_CODE_LIFETIME) is None


def test_approving_again_changes_nothing_and_does_not_bring_back_whom_one_removed():
    access_list, _ = add_request(AccessList(), private(), START_TIME, CODE)
    access_list, request = approve(access_list, CODE, START_TIME) or (None, None)
    assert access_list is not None
    assert access_list.pending(START_TIME) == []
    assert approve(access_list, CODE, START_TIME) == (access_list, request)
    access_list, removal = without(access_list, OWNED, "telegram:9")
    assert removal == "removed"
    assert approve(access_list, CODE, START_TIME) is None


def test_whoever_claims_the_bot_no_longer_waits_to_be_let_in():
    access_list, _ = add_request(AccessList(), private(), START_TIME, CODE)
    access_list, _ = add_request(access_list, private("8"), START_TIME, "other")
    assert [
        one.person for one in with_owner(access_list, "telegram:9", "Ada", START_TIME).requests
    ] == ["telegram:8"]


def test_an_owner_whose_old_code_is_approved_stays_the_owner():
    access_list, request = add_request(AccessList(), private(), START_TIME, CODE)
    access_list = replace(
        with_owner(access_list, "telegram:9", "Ada", START_TIME), requests=(request,)
    )
    access_list, _ = approve(access_list, CODE, START_TIME) or (None, None)
    assert role_of(access_list, NOBODY, private()) == "owner"


def test_the_last_owner_and_whom_the_settings_name_cannot_be_removed():
    named = ConfiguredAccess(owners=frozenset({"telegram:1"}), allow=frozenset({"telegram:2"}))
    access_list = with_owner(AccessList(), "telegram:9", "Ada", START_TIME)
    assert without(access_list, named, "telegram:1") == (access_list, "owners")
    assert without(access_list, named, "telegram:2") == (access_list, "allow")
    assert without(access_list, NOBODY, "telegram:9") == (access_list, "last owner")
    assert without(access_list, named, "telegram:9") == (AccessList(), "removed")
    assert without(AccessList(), named, "telegram:5") == (AccessList(), "unknown")


def test_a_listing_shows_no_code_and_no_name_that_steers():
    name = "Eve`\n- `telegram:1`\u202e**"
    access_list, _ = add_request(AccessList(), private(name=name), START_TIME, CODE)
    text = AccessOverview.of(access_list, OWNED, START_TIME + timedelta(minutes=3)).text()
    assert "ABCD" not in text
    assert "- `telegram:9` `Eve- telegram:1**`, asked 3 minutes ago" in text
    assert len(safe_name("x" * 1000)) == 64


def test_a_full_list_of_those_who_wait_says_that_others_get_no_answer():
    access_list = AccessList()
    for number in range(MOST_PENDING):
        full = "which is the maximum" in AccessOverview.of(access_list, OWNED, START_TIME).text()
        assert not full
        access_list, _ = add_request(access_list, private(str(number)), START_TIME, f"code{number}")
    text = AccessOverview.of(access_list, OWNED, START_TIME).text()
    assert f"- {MOST_PENDING} requests are pending, which is the maximum; new ones get no" in text
    assert (
        "the maximum"
        not in AccessOverview.of(access_list, OWNED, START_TIME + PAIRING_CODE_LIFETIME).text()
    )


def test_a_stranger_is_told_how_long_the_code_is_still_good():
    _, request = add_request(AccessList(), private(), START_TIME, CODE)
    assert request is not None
    assert "/pair ABCD-2345\n" in pairing_text(request, START_TIME, owned=True)
    assert "10 minutes" in pairing_text(request, START_TIME, owned=True)
    assert "1 minute." in pairing_text(request, request.expires, owned=False)


@pytest.mark.parametrize("length", [PAIRING_CODE_LENGTH, CLAIM_CODE_LENGTH])
def test_codes_are_told_apart_however_they_are_typed(length):
    code = new_code(length)
    assert is_code(code, length)
    typed = code.lower().replace("-", " — ")
    assert same_code(typed, code)
    assert not same_code(code[:-1], code)
    assert not same_code("", code)
    assert not set(code) & set("01ILOU")


@pytest.mark.parametrize("form", ["{}", "/start {}", "/claim {}", " /CLAIM@tapebot  {} "])
def test_a_claim_is_a_code_alone_or_behind_a_command(form):
    code = new_code(CLAIM_CODE_LENGTH)
    attempt = claim_attempt(form.format(code.lower()))
    assert attempt is not None
    assert same_code(attempt.code, code)


@pytest.mark.parametrize(
    "text", [None, "", "hello", "/start", "/start ref42", "my code is ABCD-2345-EFGH", "A" * 10_000]
)
def test_what_has_no_form_of_a_claim_is_no_try(text):
    assert claim_attempt(text) is None


def test_wrong_tries_are_counted_for_an_hour_for_each_alone():
    tries = ClaimRateLimiter()
    for _ in range(ClaimRateLimiter.PER_PERSON):
        assert tries.allowed("telegram:9", 0)
        tries.note_wrong("telegram:9", 0)
    assert not tries.allowed("telegram:9", ClaimRateLimiter.WITHIN - 1)
    assert tries.allowed("telegram:8", 0)
    for number in range(ClaimRateLimiter.MANY * 2):
        tries.note_wrong(f"telegram:1{number}", 1)
    assert tries.allowed("telegram:8", 1)
    assert not tries.allowed("telegram:9", 1)
    assert tries.allowed("telegram:9", ClaimRateLimiter.WITHIN)


def test_no_crowd_makes_the_list_of_wrong_tries_grow():
    tries = ClaimRateLimiter()
    for number in range(ClaimRateLimiter.REMEMBERED * 2):
        tries.note_wrong(f"telegram:1{number}", 1)
    assert len(tries._wrong) == ClaimRateLimiter.REMEMBERED


def test_a_place_is_read_as_people_write_it():
    assert parse_principal(" Telegram:-100 ") == "telegram:-100"
    assert parse_principal("telegram-work:42") == "telegram:42"
    assert parse_principal("42") is None
    assert parse_principal("telegram:") is None
