"""What is promised of the terms that texts are found by."""

import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from bot.tape.index.terms import tokenize

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
        "".join(random.choices("aeioubdglmnprst", k=7)) + random.choice(ENDS) for _ in range(8_000)
    ]
    with ThreadPoolExecutor(4) as threads:
        together = list(threads.map(tokenize, [f"a{end}" for end in ends]))
    # The same term, but not the same word: that of a word is remembered.
    assert together == [tokenize(f"á{end}") for end in ends]


def test_long_words_fill_no_memory():
    """Who sends words without end would otherwise take as much as the cache has room for."""
    tracemalloc.start()
    try:
        for number in range(1_000):
            tokenize(f"{number:04}" * 1_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
