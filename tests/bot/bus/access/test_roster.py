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
    parse_place,
    place_of,
    role_of,
    shown_name,
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
        Address(channel, user), Sender(user, name), private=True, places=(user,), text=text
    )


def group(user="9", *, chat="-100", places=None, channel="telegram"):
    return AccessRequest(
        Address(channel, chat),
        Sender(user, "Eve"),
        private=False,
        places=(chat,) if places is None else places,
    )


@pytest.mark.parametrize("knock", [private(), group()])
def test_an_empty_allowlist_lets_nobody_in(knock):
    assert role_of(AccessList(), NOBODY, knock) is None


@pytest.mark.parametrize("named", [ConfiguredAccess(owners=frozenset({"telegram:9"})), NOBODY])
def test_an_owner_may_everywhere(named):
    roster = (
        AccessList() if named.owners else with_owner(AccessList(), "telegram:9", "Ada", START_TIME)
    )
    assert role_of(roster, named, private()) == "owner"
    assert role_of(roster, named, group()) == "owner"


def test_a_member_may_in_private_and_where_everybody_may_and_nowhere_else():
    named = ConfiguredAccess(allow=frozenset({"telegram:9"}))
    assert role_of(AccessList(), named, private()) == "member"
    assert role_of(AccessList(), named, group()) is None
    assert role_of(with_chat(AccessList(), "telegram:-100", START_TIME), named, group()) == "member"


@pytest.mark.parametrize("place", ["discord:5", "discord:6", "discord:7"])
def test_a_thread_is_allowed_by_itself_its_channel_and_its_server(place):
    named = ConfiguredAccess(allow=frozenset({place}))
    knock = group(channel="discord", chat="5", places=("5", "6", "7"))
    assert role_of(AccessList(), named, knock) == "member"


def test_whoever_may_in_a_group_may_not_in_private():
    roster = with_chat(AccessList(), "telegram:-100", START_TIME)
    assert role_of(roster, NOBODY, group()) == "member"
    assert role_of(roster, NOBODY, private()) is None


def test_an_allowed_chat_of_one_platform_allows_none_of_another():
    named = ConfiguredAccess(owners=frozenset({"telegram:9"}), allow=frozenset({"telegram:5"}))
    assert role_of(AccessList(), named, group(channel="discord", chat="5")) is None
    assert role_of(AccessList(), named, private(channel="discord")) is None


def test_two_bots_of_one_platform_know_the_same_people():
    named = ConfiguredAccess(owners=frozenset({"telegram:9"}))
    assert role_of(AccessList(), named, private(channel="telegram-work")) == "owner"


@pytest.mark.parametrize("identifier", ["", " 9", "9 ", "9,1", "*", "a" * 65, "9\n", "9:1"])
def test_an_id_that_is_none_is_nobody(identifier):
    assert place_of("telegram", identifier) is None
    knock = replace(private(), sender=Sender(identifier, "Eve"))
    assert role_of(AccessList(), OWNED, knock) is None
    assert add_request(AccessList(), knock, START_TIME, CODE) == (AccessList(), None)


def test_a_name_lets_nobody_in():
    named = ConfiguredAccess(owners=frozenset({"telegram:1"}), allow=frozenset({"telegram:Eve"}))
    assert role_of(AccessList(), named, private(name="telegram:1")) is None


def test_a_stranger_gets_a_code_once_and_again_only_after_a_minute():
    roster, request = add_request(AccessList(), private(), START_TIME, CODE)
    assert request is not None
    assert request.code == CODE
    assert add_request(roster, private(), START_TIME + CODE_RESEND_INTERVAL / 2, "other") == (
        roster,
        None,
    )
    _, again = add_request(roster, private(), START_TIME + CODE_RESEND_INTERVAL, "other")
    assert again is not None
    assert again.code == CODE


def test_a_stranger_gets_three_codes_an_hour_and_no_more():
    roster, codes, minutes = AccessList(), [], range(180)
    for minute in minutes:
        roster, request = add_request(
            roster, private(), START_TIME + timedelta(minutes=minute), f"code{minute}"
        )
        codes += [] if request is None or request.code in codes else [request.code]
    assert codes == [f"code{n}" for n in (0, 10, 20, 60, 70, 80, 120, 130, 140)]
    assert len(roster.requests) <= MOST_CODES


def test_no_crowd_of_strangers_makes_the_list_grow():
    roster = AccessList()
    for number in range(500):
        roster, _ = add_request(roster, private(str(number)), START_TIME, f"code{number}")
    assert len(roster.requests) == MOST_PENDING
    later = START_TIME + PAIRING_CODE_LIFETIME
    roster, request = add_request(roster, private("late"), later, "fresh")
    assert request is not None
    assert roster.pending(later) == [request]


def test_a_code_is_good_for_ten_minutes_and_for_whom_it_was_made():
    roster, _ = add_request(AccessList(), private(), START_TIME, CODE)
    assert approve(roster, CODE, START_TIME + PAIRING_CODE_LIFETIME) is None
    assert approve(roster, "ABCD-2346", START_TIME) is None
    found = approve(roster, "abcd2345", START_TIME + PAIRING_CODE_LIFETIME - timedelta(seconds=1))
    assert found is not None
    assert role_of(found[0], NOBODY, private()) == "member"
    assert role_of(found[0], NOBODY, private("8")) is None


def test_a_clock_that_is_put_back_makes_no_code_good_for_longer():
    roster, _ = add_request(AccessList(), private(), START_TIME, CODE)
    assert approve(roster, CODE, START_TIME - PAIRING_CODE_LIFETIME) is None


def test_approving_again_changes_nothing_and_does_not_bring_back_whom_one_removed():
    roster, _ = add_request(AccessList(), private(), START_TIME, CODE)
    roster, request = approve(roster, CODE, START_TIME) or (None, None)
    assert roster is not None
    assert roster.pending(START_TIME) == []
    assert approve(roster, CODE, START_TIME) == (roster, request)
    roster, removal = without(roster, OWNED, "telegram:9")
    assert removal == "removed"
    assert approve(roster, CODE, START_TIME) is None


def test_whoever_claims_the_bot_no_longer_waits_to_be_let_in():
    roster, _ = add_request(AccessList(), private(), START_TIME, CODE)
    roster, _ = add_request(roster, private("8"), START_TIME, "other")
    assert [one.person for one in with_owner(roster, "telegram:9", "Ada", START_TIME).requests] == [
        "telegram:8"
    ]


def test_an_owner_whose_old_code_is_approved_stays_the_owner():
    roster, request = add_request(AccessList(), private(), START_TIME, CODE)
    roster = replace(with_owner(roster, "telegram:9", "Ada", START_TIME), requests=(request,))
    roster, _ = approve(roster, CODE, START_TIME) or (None, None)
    assert role_of(roster, NOBODY, private()) == "owner"


def test_the_last_owner_and_whom_the_settings_name_cannot_be_removed():
    named = ConfiguredAccess(owners=frozenset({"telegram:1"}), allow=frozenset({"telegram:2"}))
    roster = with_owner(AccessList(), "telegram:9", "Ada", START_TIME)
    assert without(roster, named, "telegram:1") == (roster, "owners")
    assert without(roster, named, "telegram:2") == (roster, "allow")
    assert without(roster, NOBODY, "telegram:9") == (roster, "last owner")
    assert without(roster, named, "telegram:9") == (AccessList(), "removed")
    assert without(AccessList(), named, "telegram:5") == (AccessList(), "unknown")


def test_a_listing_shows_no_code_and_no_name_that_steers():
    name = "Eve`\n- `telegram:1`\u202e**"
    roster, _ = add_request(AccessList(), private(name=name), START_TIME, CODE)
    text = AccessOverview.of(roster, OWNED, START_TIME + timedelta(minutes=3)).text()
    assert "ABCD" not in text
    assert "- `telegram:9` `Eve- telegram:1**`, asked 3 minutes ago" in text
    assert len(shown_name("x" * 1000)) == 64


def test_a_full_list_of_those_who_wait_says_that_others_get_no_answer():
    roster = AccessList()
    for number in range(MOST_PENDING):
        full = "which is the most at once" in AccessOverview.of(roster, OWNED, START_TIME).text()
        assert not full
        roster, _ = add_request(roster, private(str(number)), START_TIME, f"code{number}")
    text = AccessOverview.of(roster, OWNED, START_TIME).text()
    assert f"- {MOST_PENDING} wait, which is the most at once: whoever else asks gets no" in text
    assert (
        "most at once"
        not in AccessOverview.of(roster, OWNED, START_TIME + PAIRING_CODE_LIFETIME).text()
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
    assert parse_place(" Telegram:-100 ") == "telegram:-100"
    assert parse_place("telegram-work:42") == "telegram:42"
    assert parse_place("42") is None
    assert parse_place("telegram:") is None
