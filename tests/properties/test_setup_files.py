"""The setup changes what it is asked to in ``.env`` and ``tapebot.toml``, and nothing else."""

from __future__ import annotations

import io
import tomllib

import pytest
from dotenv import dotenv_values
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bot.core.errors import SettingsError
from bot.runtime.setup.file_text import change_keys, set_variables

VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NAMES = st.sampled_from("ABCDEFGN")
ENV_LINES = st.sampled_from(
    [
        *(
            "A=1\n",
            "A=2 # the second\n",
            "# a comment\n",
            "\n",
            "   \n",
            "B='x # y' # c\n",
            "  C = 3 \r\n",
        ),
        *(
            "export D=4 # d\n",
            'E="a\nb"\n',
            "F=\n",
            "G= # empty\n",
            "no assignment\n",
            "#N=3\n",
            "n=5\n",
        ),
        "H=x#y ${A}\n",
    ]
)
ENVS = st.lists(ENV_LINES).map("".join)

TOML_TOPS = st.sampled_from(
    [
        *(
            "# a comment\n",
            "\n",
            'x = """a\n[b]\n"""\n',
            "array = [\n[1],\n]\n",
            'model = "m" # mine\n',
        ),
        *("\"timezone\" = 'Z'\n", "a.b = 1\r\n", "  indented = 2\n"),
    ]
)
TOML_TABLES = st.sampled_from(
    ["[t]\nmodel = 1\n", "# of this table\n[[t2]]\nk='v'\n", "[models.x]\nmodel='y'"]
)
TOMLS = st.tuples(
    st.lists(TOML_TOPS, max_size=6, unique=True).map("".join),
    st.lists(TOML_TABLES, max_size=3, unique=True).map("\n".join),
).map("".join)


def read(text: str) -> dict[str, str | None]:
    return dict(dotenv_values(stream=io.StringIO(text, newline="")))


def others(values: dict[str, str | None], name: str) -> dict[str, str | None]:
    # Its own line may name A, which then has another value.
    return {key: value for key, value in values.items() if key.upper() != name and key != "H"}


@given(ENVS, VALUES, NAMES)
@example("", "${X}\\", "A")
def test_a_variable_reads_back_and_all_other_lines_of_dotenv_stay(text, value, name):
    changed = set_variables(text, {name: value}, {name: "why"})
    after = read(changed)
    assert value in [found for key, found in after.items() if key.upper() == name]
    assert others(after, name) == others(read(text), name)
    kept = [line for line in text.splitlines() if line.strip().startswith("#")]
    assert [line for line in changed.splitlines() if line in kept] == kept


@given(ENVS, NAMES)
def test_a_removed_variable_is_gone_and_all_others_stay(text, name):
    after = read(set_variables(text, {name: None}))
    assert not [key for key in after if key.upper() == name]
    assert others(after, name) == others(read(text), name)


@given(TOMLS, VALUES, st.sampled_from(["model", "timezone", "web_listen"]))
def test_a_setting_reads_back_and_all_else_of_the_toml_file_stays(text, value, name):
    text = f'{name} = "old" # mine\n{text}'
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)
    changed = change_keys(text, {name: value, "another": value})
    assert tomllib.loads(changed) == {**before, name: value}
    kept = [line for line in text.splitlines() if line.strip().startswith("#")]
    assert [line for line in changed.splitlines() if line in kept] == kept
    before.pop(name)
    assert tomllib.loads(change_keys(changed, {name: None})) == before


def test_a_file_that_is_no_toml_is_left_alone():
    with pytest.raises(SettingsError, match="cannot be read"):
        change_keys("model = ", {"model": "x"})
