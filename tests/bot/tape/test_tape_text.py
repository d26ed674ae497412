"""Quotations, normal forms and terms of texts of any length and make."""

from __future__ import annotations

import re
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.core.text import normalize_unicode
from bot.tape.index.terms import tokenize


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC"])
@given(text=st.text(max_size=60))
def test_a_text_of_any_language_has_the_normal_form_that_unicode_gives_it(form, text) -> None:
    assert normalize_unicode(form, text) == unicodedata.normalize(form, text)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0344\u0323"])
def test_a_heap_of_marks_is_sorted_a_few_at_a_time(marks: str) -> None:
    heap = normalize_unicode("NFKC", "a" + marks * 50_000)
    assert unicodedata.is_normalized("NFKC", heap[:10_000])
    assert not re.search(r"[^\u034f\w]{40}", heap[1:10_000])


ENDS = "ational izations fulness iveness edly ability ously ements".split()


@pytest.fixture
def hurried_threads():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_a_word_has_the_same_term_whatever_other_threads_do(hurried_threads):
    random = Random(7)
    ends = [
        "".join(random.choices("aeioubdglmnprst", k=7)) + random.choice(ENDS) for _ in range(2_000)
    ]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(tokenize, [f"a{end}" for end in ends]))
    # The same term, but not the same word: that of a word is remembered.
    assert together == [tokenize(f"á{end}") for end in ends]
