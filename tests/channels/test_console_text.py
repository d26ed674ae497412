"""What the console shows: pure functions and folds."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from bot.bus import Activity, Address, Answer, PartialAnswer, Sender
from channels.console.messages import InboundFactory
from channels.console.prompt import is_command_name
from channels.console.render import AnswerRenderer, last_rows
from channels.console.terminal_text import strip_controls
from channels.console.turn_state import TurnState

HERE = Address("console", "local")
MARKDOWN = st.text(
    st.sampled_from([*"ab 1#*_`~>-+|:[]()!<>&\\\n\t", "\x1b", "\x9b", "\r", "\ud800", "你"])
)
STYLES = re.compile(r"\x1b\[[0-9;]*m")


@given(st.text(st.characters()))
def test_no_control_character_is_printable(text: str):
    """Newline and tab stay, and all else that is no control."""
    shown = strip_controls(text)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)
    assert shown.encode() is not None
    assert strip_controls(shown) == shown


@given(MARKDOWN)
def test_any_answer_renders_and_only_styles_are_added(text: str):
    """No text breaks the renderer, and no escape sequence gets through it."""
    terminal = io.StringIO()
    rendered = AnswerRenderer(terminal).render(text)
    assert strip_controls(STYLES.sub("", rendered)) == STYLES.sub("", rendered)
    assert terminal.getvalue() == ""


@given(st.text(), st.integers(2, 40), st.integers(1, 10))
def test_a_tail_fits_its_rows_and_ends_as_the_text_does(text: str, columns: int, rows: int):
    """What streams stands above the prompt and never fills the screen."""
    lines = last_rows(text, columns=columns, rows=rows)
    assert len(lines) <= rows
    assert all(cell_len(line) <= columns for line in lines)
    if text.isascii() and text.isalnum():
        assert text.endswith("".join(lines))


def test_a_tail_counts_wide_characters_as_two():
    """A row of Chinese holds half as many."""
    assert last_rows("你好世界", columns=4, rows=5) == ["你好", "世界"]


def test_only_the_beginning_of_a_message_is_a_command_name():
    """Completion never opens within a sentence."""
    assert is_command_name("/")
    assert is_command_name("/sta")
    assert not is_command_name("/status ")
    assert not is_command_name("and /sta")
    assert not is_command_name("")


def test_an_author_never_repeats_an_id():
    """Ids of one run count up; the times are aware."""
    author = InboundFactory(HERE, Sender("local", "Ada"))
    first, second = author.create("one"), author.create("one")
    assert first.id != second.id
    assert first.session == "console:local"
    assert first.sent_at.tzinfo is UTC
    assert first.sent_at <= second.sent_at <= datetime.now(UTC)


def test_a_turn_runs_until_each_message_is_answered():
    """The answer to one message does not end the wait for another."""
    turn = TurnState()
    turn.message_sent("1")
    turn.message_sent("2")
    turn.outbound_received(Answer(HERE, "a", "text", reply_to="1"))
    assert turn.busy
    turn.outbound_received(Answer(HERE, "b", "text", reply_to="2"))
    assert not turn.busy


def test_an_answer_to_several_messages_ends_the_turn_when_the_bot_is_idle():
    """Messages that another's answer covers are not waited for."""
    turn = TurnState()
    turn.message_sent("1")
    turn.message_sent("2")
    turn.outbound_received(Activity(HERE, "thinking"))
    turn.outbound_received(Answer(HERE, "a", "text", reply_to="2"))
    assert turn.busy
    turn.outbound_received(Activity(HERE, "idle"))
    assert not turn.busy


def test_a_late_partial_never_brings_a_finished_text_back():
    """The stream of an answer ends with it."""
    turn = TurnState()
    turn.message_sent("1")
    turn.message_sent("2")
    turn.outbound_received(PartialAnswer(HERE, "s", "so f"))
    assert turn.text == "so f"
    turn.outbound_received(Answer(HERE, "a", "so far", reply_to="1", stream="s"))
    turn.outbound_received(PartialAnswer(HERE, "s", "so f"))
    assert (turn.busy, turn.text) == (True, "")


def test_a_stop_is_asked_for_anew_in_the_next_turn():
    """What was asked of one turn is forgotten with it."""
    turn = TurnState()
    turn.message_sent("1")
    turn.stop_requested = True
    turn.outbound_received(Activity(HERE, "idle"))
    assert not turn.stop_requested
    turn.message_rejected("unknown")
    assert not turn.busy


def test_the_doing_of_a_turn_names_its_tool():
    """Thinking, unless a tool runs, or the turn waits for the model."""
    turn = TurnState()
    turn.outbound_received(Activity(HERE, "waiting"))
    assert turn.activity == "waiting for the busy model"
    turn.outbound_received(Activity(HERE, "tool", "memory_save"))
    assert turn.activity == "memory_save"
    turn.outbound_received(Activity(HERE, "thinking"))
    assert turn.activity == "thinking"
