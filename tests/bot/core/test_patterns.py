"""Regular expressions are compiled when they are used first."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from bot.core.patterns import LazyPattern

_LONGEST_COMPILED = 200
_PROGRAM = """
import gc, json, re, sys
import bot.__main__, bot.cli.main, bot.runtime.app
from bot.core.patterns import LazyPattern

lazy = [one for one in gc.get_objects() if isinstance(one, LazyPattern)]
ours = [vars(module) for name, module in sys.modules.items() if name.partition(".")[0] == "bot"]
print(json.dumps({
    "made": len(lazy),
    "compiled": [one.pattern for one in lazy if "compiled" in vars(one)],
    "eager": [
        value.pattern for names in ours for value in names.values()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    ],
}))
"""


def test_loading_the_program_compiles_only_the_few_short_patterns_that_its_tables_need():
    """A start would spend a fifth of a second on the others."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], check=True, capture_output=True, timeout=60
    )
    told = json.loads(done.stdout)
    assert told["made"] > 300
    assert told["eager"] == []
    assert len(told["compiled"]) <= 12
    assert max(map(len, told["compiled"])) <= _LONGEST_COMPILED


def test_a_pattern_does_what_the_compiled_one_does():
    """Each method is the compiled pattern's own, with its arguments."""
    word = LazyPattern(r"(?P<first>[a-z])\w*")
    text = "One two, three"
    assert word.search(text)["first"] == "n"
    assert word.match(text) is None
    assert word.match(text, 4)[0] == "two"
    assert word.fullmatch("two")[0] == "two"
    assert [found[0] for found in word.finditer(text)] == ["ne", "two", "three"]
    assert word.findall(text) == ["n", "t", "t"]
    assert word.sub("x", text, 1) == "Ox two, three"
    assert word.subn("x", text) == ("Ox x, x", 3)
    assert LazyPattern(", ").split(text) == ["One two", "three"]
    assert LazyPattern("ONE", flags=2).search("one") is not None
    assert word.search is word.search


def test_a_wrong_pattern_is_refused_when_it_is_used():
    """What cannot be compiled raises what ``re`` raises."""
    wrong = LazyPattern("(")
    with pytest.raises(Exception, match="missing"):
        wrong.search("text")
