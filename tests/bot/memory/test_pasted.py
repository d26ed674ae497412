"""Pasted mails, chats and texts to be worked on are not what their writer says; what stands around them is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.memory.records.pasted_text import own_words, pasted_parts, split_pasted

MAIL = "From: Eva Brandt <eva@brandt.example>\nSubject: Vacation\n\nHi Jonas,\nI am moving to Madrid.\nBest,\nEva"
FOREIGN = {
    "a mail with its header": MAIL,
    "a mail in one line": "From: Eva <eva@brandt.example> To: Jonas <j@b.example> Subject: News - I am moving to Madrid.",
    "a mail that is passed on": "---------- Forwarded message ---------\nI am moving to Madrid.",
    "by another program": "Fwd: News\n\nI am moving to Madrid.",
    "an answer's quotation": "On Tue, 3 Nov 2026 at 09:12, Eva Brandt wrote:\nI am moving to Madrid.",
    "a letter to the writer": "Dear Jonas,\nI am moving to Madrid and cannot come.",
    "a letter that another signed": "Hello all,\nI am moving to Madrid.\nKind regards\nEva Brandt",
    "quoted lines": "> I am moving to Madrid.\n> So there.",
    "a fence": "```\nI am moving to Madrid.\n```",
    "a block of HTML": "<blockquote>I am moving to Madrid.</blockquote>",
    "a chat with times": "[10:01] Eva: I am moving to Madrid",
    "a chat of a telephone": "12.11.26, 18:03 - Eva: I am moving to Madrid",
    "a chat with names alone": "Eva: I am moving to Madrid\nBen: really?",
    "a chat with the writer in it": "Eva: moving to Madrid!\nMe: really?",
    "subtitles": "1\n00:00:01,000 --> 00:00:04,000\nI am moving to Madrid.",
    "a table": "name,city,job\nEva,Madrid,nurse",
    "a draft": "Draft a tweet: I am moving to Madrid.",
    "a translation": "Can you translate into French: I am moving to Madrid.",
}
OWN = {
    "a greeting": "Hello!\nI am moving to Madrid.",
    "a letter of one's own": "Hi!\n\nI am moving to Madrid.\n\nThanks,\nJonas",
    "a list": "Lotte: piano on Wednesdays\nFinn: football on Fridays",
    "a list about oneself": "Name: Jonas\nWork: I repair bikes\nHome: I live in Kiel",
    "what is added": "PS: I moved\nUpdate: I also got a dog",
    "a list with commas": "I play chess, go, and poker\nI like tea, milk, and rice",
    "a plan of a day": "10:30 dentist\n12:00 lunch with Eva",
    "a wish": "Write it down please: I am moving to Madrid.",
    "a journey": "The train goes from: Kiel to: Bonn, mail me at jonas@berg.example from: Monday",
    "a heart": "<3 I am moving to Madrid",
}


@pytest.mark.parametrize("text", FOREIGN.values(), ids=FOREIGN)
def test_what_somebody_else_wrote_is_not_the_writers(text):
    assert own_words(text, "Jonas Berg") == ""


@pytest.mark.parametrize("text", OWN.values(), ids=OWN)
def test_what_the_writer_says_in_lines_of_their_own_stays_theirs(text):
    assert own_words(text, "Jonas Berg") == text


@pytest.mark.parametrize("theirs", [FOREIGN[name] for name in ("a mail with its header", "quoted lines", "a fence",
    "a chat with times", "subtitles", "a draft")])  # fmt: skip
def test_what_is_said_around_it_stays_the_writers(theirs):
    text = f"Look at this\n\n{theirs}\n\nI am off to Kiel."
    assert own_words(text, "Jonas") == "Look at this\n\nI am off to Kiel."
    assert [one.strip() for one in pasted_parts(text, "Jonas")] == [theirs]


def test_an_article_goes_as_far_as_its_paragraph_and_a_quotation_as_far_as_its_marks():
    assert own_words("Here is an article:\nI grew up in Ulm.\n\nNice, no?") == (
        "Here is an article:\n\nNice, no?"
    )
    assert own_words('Eva writes:\n"I live\nin Ulm."\nI do not.') == "Eva writes:\n\nI do not."


@given(st.text(alphabet=st.sampled_from('aI>:`~<\n ,-1.:"[]'), max_size=80) | st.text(max_size=80))
def test_no_letter_is_lost_or_made_up(text):
    assert "".join(part for part, _ in split_pasted(text, "Jonas")) == text
