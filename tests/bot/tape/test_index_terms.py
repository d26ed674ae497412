"""What is promised of the terms that texts are found by."""

import sys
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
