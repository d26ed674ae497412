"""Claims that use the person's words for something else are not carried; those that use other words for it are."""

from __future__ import annotations

from datetime import date

import pytest

from bot.memory.gate.claim_support import missing_detail, unsupported_reason

DAY = date(2026, 5, 14)  # a Thursday
TWISTED = [
    ("Oliver hired me.", "The user hired Oliver.", "the other way round"),
    ("I lent my bike to Sue.", "Sue lent her bike to the user.", "the other way round"),
    ("Meine Tochter hat mir das Auto verkauft.", "Die Nutzerin hat ihrer Tochter das Auto verkauft.", "the other way round"),
    ("Most of my friends are from Porto.", "All of the user's friends are from Porto.", "not said of all"),
    ("Please send me the invoice.", "The user wants every invoice approved.", "not said of all"),
    ("I might apply for the job in Zurich.", "The user will apply for the job in Zurich.", "supposes"),
    ("I can do anything but skiing.", "The user can do skiing.", "opposite"),
    ("I refuse to fly.", "The user flies.", "opposite"),
    ("My sister is childless.", "The user's sister has children.", "opposite"),
    ("I had a motorbike back then.", "The user has a motorbike.", "opposite"),
    ("I'm allergic to penicillin.", "The user is not allergic to penicillin.", "opposite"),
    ("Does Marco live in Rome or Milan", "Marco lives in Rome.", "asks"),
    ("The exam is next Thursday.", "The user has an exam on 2026-05-14.", "date"),
    ("My bank is Equity.", "The user's bank is \u0395quity.", "name"),
    ("My contract ends at the end of March.", "The user's contract ends at the end of May.", "date"),
]  # fmt: skip
HONEST = [
    ("We want to go to Lisbon.", "The user is planning a trip to Lisbon."),
    ("I'm not a vegetarian any more.", "The user is no longer a vegetarian."),
    ("Could you call me Joni?", "The user wants to be called Joni."),
    ("Anna, Ben and Cleo are my kids.", "The user has three children: Anna, Ben and Cleo."),
    ("My dentist appointment is tomorrow at 10.", "The user has a dentist appointment on 2026-05-15 at 10:00."),
    ("The exam is next Thursday.", "The user has an exam on 2026-05-21."),
    ("My contract ends at the end of the month.", "The user's contract ends on 31 May 2026."),
    ("We're moving next month, on the 17th.", "The user is moving on 17 June 2026."),
    ("The twins are due in June.", "The user's twins are due in June."),
    ("The flat's sixty square metres.", "The user's flat has 60 m²."),
    ("I might apply for the job in Zurich.", "The user may apply for the job in Zurich."),
    ("We keep kosher at home.", "The user's household is kosher."),
]  # fmt: skip


@pytest.mark.parametrize(("said", "claim", "why"), TWISTED, ids=[one[1] for one in TWISTED])
def test_what_is_twisted_is_not_carried(said, claim, why):
    assert why in str(unsupported_reason(claim, said, when=DAY))


@pytest.mark.parametrize(("said", "claim"), HONEST, ids=[one[1] for one in HONEST])
def test_what_is_said_in_other_words_is_carried(said, claim):
    assert unsupported_reason(claim, said, when=DAY) is None


SPELLED = [
    ("The train leaves at half past five in the afternoon.", "The user's train leaves at 17:30."),
    ("Morgen früh um halb neun Zahnarzt", "The user has a dentist appointment on 2026-05-15 at 8:30."),
    ("The stats exam is a week from tomorrow.", "The user has a stats exam on 2026-05-22."),
    ("Five years ago today I got married.", "The user married on 2021-05-14."),
    ("My lease runs out at the end of next month.", "The user's lease runs out on 2026-06-30."),
    ("My wife is pregnant, due in december.", "The user's wife is due in December 2026."),
    ("I've been sober for a year and a half.", "The user has been sober for 18 months."),
    ("trabalho pra uma empresa canadense", "The user works for a Canadian company."),
    ("paid 11.5k for the car", "The user paid 11,500 for the car."),
    ("我在准备日语N2", "Wang Min is preparing for the Japanese N2 exam."),
    ("je garde ses chats du 20 au 27 décembre", "The user looks after cats from 20 to 27 December."),
]  # fmt: skip
MISSPELLED = [
    ("I live in Austria.", "The user lives in Australia.", "name"),
    ("My wife is Christina.", "The user's wife is Christian.", "name"),
    ("The exam is a week from tomorrow.", "The exam is on 2026-05-21.", "date"),
    ("My sister married in May 2024.", "The user's sister married in May 2025.", "date"),
    ("The train leaves at half past five.", "The user's train leaves at 6:30.", "number"),
    ("I've been sober for a year and a half.", "The user has been sober for 15 months.", "number"),
]  # fmt: skip


@pytest.mark.parametrize(("said", "claim"), SPELLED, ids=[one[1] for one in SPELLED])
def test_numbers_dates_and_names_may_be_spelled_otherwise(said, claim):
    assert missing_detail(claim, said, DAY, names=("王敏",), loose=True) is None


@pytest.mark.parametrize(("said", "claim", "why"), MISSPELLED, ids=[one[1] for one in MISSPELLED])
def test_others_than_those_that_were_said_are_missed(said, claim, why):
    assert why in str(missing_detail(claim, said, DAY, loose=True)).split()


def test_what_takes_a_facts_place_may_keep_what_the_fact_says():
    fact = "Lotte: piano on Wednesdays at 16:00"
    said = "Lotte's piano moved to 17:00, same day."
    changed = "Lotte: piano on Wednesdays at 17:00"
    assert "the date" in str(unsupported_reason(changed, said, when=DAY))
    assert unsupported_reason(changed, said, when=DAY, known=fact) is None
    assert unsupported_reason("Lotte: piano on Fridays at 17:00", said, when=DAY, known=fact)
