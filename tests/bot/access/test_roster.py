"""Who is let in, decided from state, settings and time alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from bot.bus import Address, Knock, Sender
from bot.bus.access.codes import (
    CLAIM,
    PAIRING,
    Tries,
    claim_attempt,
    is_code,
    new_code,
    same_code,
)
from bot.bus.access.roster import (
    AGAIN,
    MOST_CODES,
    MOST_PENDING,
    VALID,
    Named,
    Roster,
    approve,
    ask,
    claimed,
    parse_place,
    place_of,
    role_of,
    shown_name,
    with_chat,
    without,
)
from bot.bus.access.wording import Listing, pairing_text
from bot.testing.manual_clock import START

NOBODY = Named()
OWNED = Named(owners=frozenset({"telegram:1"}))
CODE = "ABCD-2345"


def private(user="9", *, channel="telegram", name="Eve", text="hello"):
    return Knock(
        Address(channel, user), Sender(user, name), private=True, places=(user,), text=text
    )


def group(user="9", *, chat="-100", places=None, channel="telegram"):
    return Knock(
        Address(channel, chat),
        Sender(user, "Eve"),
        private=False,
        places=(chat,) if places is None else places,
    )


@pytest.mark.parametrize("knock", [private(), group()])
def test_an_empty_allowlist_lets_nobody_in(knock):
    assert role_of(Roster(), NOBODY, knock) is None


@pytest.mark.parametrize("named", [Named(owners=frozenset({"telegram:9"})), NOBODY])
def test_an_owner_may_everywhere(named):
    roster = Roster() if named.owners else claimed(Roster(), "telegram:9", "Ada", START)
    assert role_of(roster, named, private()) == "owner"
    assert role_of(roster, named, group()) == "owner"


def test_a_member_may_in_private_and_where_everybody_may_and_nowhere_else():
    named = Named(allow=frozenset({"telegram:9"}))
    assert role_of(Roster(), named, private()) == "member"
    assert role_of(Roster(), named, group()) is None
    assert role_of(with_chat(Roster(), "telegram:-100", START), named, group()) == "member"


@pytest.mark.parametrize("place", ["discord:5", "discord:6", "discord:7"])
def test_a_thread_is_allowed_by_itself_its_channel_and_its_server(place):
    named = Named(allow=frozenset({place}))
    knock = group(channel="discord", chat="5", places=("5", "6", "7"))
    assert role_of(Roster(), named, knock) == "member"


def test_whoever_may_in_a_group_may_not_in_private():
    roster = with_chat(Roster(), "telegram:-100", START)
    assert role_of(roster, NOBODY, group()) == "member"
    assert role_of(roster, NOBODY, private()) is None


def test_an_allowed_chat_of_one_platform_allows_none_of_another():
    named = Named(owners=frozenset({"telegram:9"}), allow=frozenset({"telegram:5"}))
    assert role_of(Roster(), named, group(channel="discord", chat="5")) is None
    assert role_of(Roster(), named, private(channel="discord")) is None


def test_two_bots_of_one_platform_know_the_same_people():
    named = Named(owners=frozenset({"telegram:9"}))
    assert role_of(Roster(), named, private(channel="telegram-work")) == "owner"


@pytest.mark.parametrize("identifier", ["", " 9", "9 ", "9,1", "*", "a" * 65, "9\n", "9:1"])
def test_an_id_that_is_none_is_nobody(identifier):
    assert place_of("telegram", identifier) is None
    knock = replace(private(), sender=Sender(identifier, "Eve"))
    assert role_of(Roster(), OWNED, knock) is None
    assert ask(Roster(), knock, START, CODE) == (Roster(), None)


def test_a_name_lets_nobody_in():
    named = Named(owners=frozenset({"telegram:1"}), allow=frozenset({"telegram:Eve"}))
    assert role_of(Roster(), named, private(name="telegram:1")) is None


def test_a_stranger_gets_a_code_once_and_again_only_after_a_minute():
    roster, request = ask(Roster(), private(), START, CODE)
    assert request is not None
    assert request.code == CODE
    assert ask(roster, private(), START + AGAIN / 2, "other") == (roster, None)
    _, again = ask(roster, private(), START + AGAIN, "other")
    assert again is not None
    assert again.code == CODE


def test_a_stranger_gets_three_codes_an_hour_and_no_more():
    roster, codes, minutes = Roster(), [], range(180)
    for minute in minutes:
        roster, request = ask(roster, private(), START + timedelta(minutes=minute), f"code{minute}")
        codes += [] if request is None or request.code in codes else [request.code]
    assert codes == [f"code{n}" for n in (0, 10, 20, 60, 70, 80, 120, 130, 140)]
    assert len(roster.requests) <= MOST_CODES


def test_no_crowd_of_strangers_makes_the_list_grow():
    roster = Roster()
    for number in range(500):
        roster, _ = ask(roster, private(str(number)), START, f"code{number}")
    assert len(roster.requests) == MOST_PENDING
    later = START + VALID
    roster, request = ask(roster, private("late"), later, "fresh")
    assert request is not None
    assert roster.pending(later) == [request]


def test_a_code_is_good_for_ten_minutes_and_for_whom_it_was_made():
    roster, _ = ask(Roster(), private(), START, CODE)
    assert approve(roster, CODE, START + VALID) is None
    assert approve(roster, "ABCD-2346", START) is None
    found = approve(roster, "abcd2345", START + VALID - timedelta(seconds=1))
    assert found is not None
    assert role_of(found[0], NOBODY, private()) == "member"
    assert role_of(found[0], NOBODY, private("8")) is None


def test_a_clock_that_is_put_back_makes_no_code_good_for_longer():
    roster, _ = ask(Roster(), private(), START, CODE)
    assert approve(roster, CODE, START - VALID) is None


def test_approving_again_changes_nothing_and_does_not_bring_back_whom_one_removed():
    roster, _ = ask(Roster(), private(), START, CODE)
    roster, request = approve(roster, CODE, START) or (None, None)
    assert roster is not None
    assert roster.pending(START) == []
    assert approve(roster, CODE, START) == (roster, request)
    roster, removal = without(roster, OWNED, "telegram:9")
    assert removal == "removed"
    assert approve(roster, CODE, START) is None


def test_whoever_claims_the_bot_no_longer_waits_to_be_let_in():
    roster, _ = ask(Roster(), private(), START, CODE)
    roster, _ = ask(roster, private("8"), START, "other")
    assert [one.person for one in claimed(roster, "telegram:9", "Ada", START).requests] == [
        "telegram:8"
    ]


def test_an_owner_whose_old_code_is_approved_stays_the_owner():
    roster, request = ask(Roster(), private(), START, CODE)
    roster = replace(claimed(roster, "telegram:9", "Ada", START), requests=(request,))
    roster, _ = approve(roster, CODE, START) or (None, None)
    assert role_of(roster, NOBODY, private()) == "owner"


def test_the_last_owner_and_whom_the_settings_name_cannot_be_removed():
    named = Named(owners=frozenset({"telegram:1"}), allow=frozenset({"telegram:2"}))
    roster = claimed(Roster(), "telegram:9", "Ada", START)
    assert without(roster, named, "telegram:1") == (roster, "owners")
    assert without(roster, named, "telegram:2") == (roster, "allow")
    assert without(roster, NOBODY, "telegram:9") == (roster, "last owner")
    assert without(roster, named, "telegram:9") == (Roster(), "removed")
    assert without(Roster(), named, "telegram:5") == (Roster(), "unknown")


def test_a_listing_shows_no_code_and_no_name_that_steers():
    name = "Eve`\n- `telegram:1`\u202e**"
    roster, _ = ask(Roster(), private(name=name), START, CODE)
    text = Listing.of(roster, OWNED, START + timedelta(minutes=3)).text()
    assert "ABCD" not in text
    assert "- `telegram:9` `Eve- telegram:1**`, asked 3 minutes ago" in text
    assert len(shown_name("x" * 1000)) == 64


def test_a_full_list_of_those_who_wait_says_that_others_get_no_answer():
    roster = Roster()
    for number in range(MOST_PENDING):
        full = "which is the most at once" in Listing.of(roster, OWNED, START).text()
        assert not full
        roster, _ = ask(roster, private(str(number)), START, f"code{number}")
    text = Listing.of(roster, OWNED, START).text()
    assert f"- {MOST_PENDING} wait, which is the most at once: whoever else asks gets no" in text
    assert "most at once" not in Listing.of(roster, OWNED, START + VALID).text()


def test_a_stranger_is_told_how_long_the_code_is_still_good():
    _, request = ask(Roster(), private(), START, CODE)
    assert request is not None
    assert "/pair ABCD-2345\n" in pairing_text(request, START, owned=True)
    assert "10 minutes" in pairing_text(request, START, owned=True)
    assert "1 minute." in pairing_text(request, request.expires, owned=False)


@pytest.mark.parametrize("length", [PAIRING, CLAIM])
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
    code = new_code(CLAIM)
    attempt = claim_attempt(form.format(code.lower()))
    assert attempt is not None
    assert same_code(attempt.code, code)


@pytest.mark.parametrize(
    "text", [None, "", "hello", "/start", "/start ref42", "my code is ABCD-2345-EFGH", "A" * 10_000]
)
def test_what_has_no_form_of_a_claim_is_no_try(text):
    assert claim_attempt(text) is None


def test_wrong_tries_are_counted_for_an_hour_for_each_alone():
    tries = Tries()
    for _ in range(Tries.PER_PERSON):
        assert tries.allowed("telegram:9", 0)
        tries.note_wrong("telegram:9", 0)
    assert not tries.allowed("telegram:9", Tries.WITHIN - 1)
    assert tries.allowed("telegram:8", 0)
    for number in range(Tries.MANY * 2):
        tries.note_wrong(f"telegram:1{number}", 1)
    assert tries.allowed("telegram:8", 1)
    assert not tries.allowed("telegram:9", 1)
    assert tries.allowed("telegram:9", Tries.WITHIN)


def test_no_crowd_makes_the_list_of_wrong_tries_grow():
    tries = Tries()
    for number in range(Tries.REMEMBERED * 2):
        tries.note_wrong(f"telegram:1{number}", 1)
    assert len(tries._wrong) == Tries.REMEMBERED


def test_a_place_is_read_as_people_write_it():
    assert parse_place(" Telegram:-100 ") == "telegram:-100"
    assert parse_place("telegram-work:42") == "telegram:42"
    assert parse_place("42") is None
    assert parse_place("telegram:") is None
