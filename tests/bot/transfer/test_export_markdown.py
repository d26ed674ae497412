"""A transcript is for people, and no text in it is more than text."""

from __future__ import annotations

import anyio
import pytest
from exchange_files import UTC, export, tapes
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sampling import examples

from bot.memory.records.event_names import (
    HISTORY_EVENT,
)
from bot.tape.entries import (
    NON_BOUNDARY_ANCHORS,
    TapeEntry,
    anchor,
    event,
    message,
    tool_call,
    tool_result,
)
from bot.transfer.markdown import MarkdownTranscript

TAPE = "telegram:42"
_MARKUP = st.lists(
    st.sampled_from(
        [
            "# ",
            "\n",
            "\r",
            "> ",
            "```",
            "~~~",
            "`",
            "<script>",
            "<!--",
            "]]>",
            "[x]: http://e",
            "***",
            "---",
            "===",
            "- ",
            "1. ",
            "    ",
            "\t",
            "</blockquote>",
            "\\",
            "&lt;",
            "<",
            "\u2028",
            "\x0b",
            "\x1b[2J",
            "\x9b",
            "\u202e",
            "word",
            "![",
            "](",
            "|",
            "|-|",
            "\x00",
            "[x]",
            "\ud800",
            "$$",
        ]
    ),
    max_size=12,
).map("".join)
_TEXTS = _MARKUP | st.text(max_size=30)


def rendered(*entries: TapeEntry) -> str:
    transcript = MarkdownTranscript(UTC)
    return transcript.head(None, TAPE) + "".join(map(transcript.block, entries))


def skeleton(text: str) -> list[str]:
    """Return the blocks outside of quotes, and whatever is raw HTML or a link anywhere."""
    found: list[str] = []
    depth = 0
    environment: dict[str, object] = {}
    for token in MarkdownIt("commonmark", {"html": True}).parse(text, environment):
        depth -= token.type == "blockquote_close"
        if depth == 0:
            found.append(token.type)
        depth += token.type == "blockquote_open"
        inner = token.children or []
        outside = [one.type for one in inner if depth == 0]
        found += [one.type for one in inner if one.type == "html_inline"]
        found += [one for one in outside if one in ("link_open", "image")]
        found += [token.type] if token.type == "html_block" else []
    assert not environment.get("references")
    return found


def talk(text: str) -> list[TapeEntry]:
    sender = {"id": text, "name": text}
    meta = {"sender": sender, "private": False, "quote": text, "ts": "2026-02-10T10:00:00+00:00"}
    files = [{"kind": "document", "name": text, "note": text}]
    return [
        anchor("session/start", {"owner": "human"}),
        message("user", text, attachments=files, **meta),
        tool_call(text, [{"id": "c", "name": text, "arguments": text}]),
        tool_result("c", text, text, status=text),
        message("assistant", text),
        event(HISTORY_EVENT, {"entry": text}),
        event("reply", {"text": text}),
        event("command", {"name": text, "arguments": text}),
        # Those that are the memory's own bookkeeping are left out of a transcript.
        anchor(
            "x" if text in {"", *NON_BOUNDARY_ANCHORS} else text,
            {"summary": text or "x", "next_steps": [text]},
        ),
    ]


@given(_TEXTS)
@example("> \n\n# heading")
@example("```\nopen for ever")
@example("<!-- open for ever")
@example("\\<script>alert(1)</script>")
@example("[here]: http://evil 'x'")
@example("memory/consolidated")
@hypothesis_settings(max_examples=examples(400))
def test_no_text_reaches_beyond_its_place(text):
    shown = rendered(*talk(text))
    assert not any(char in shown for char in "\x00\x1b\x9b\u202e\r\u2028\x0b")
    found = skeleton(shown)
    assert "html_block" not in found
    assert "html_inline" not in found
    assert "link_open" not in found
    assert found.count("heading_open") == 3
    assert found.count("blockquote_open") == 7 if text.strip() else 6
    assert "fence" not in found
    assert "code_block" not in found


async def test_a_transcript_says_who_said_what_when_and_what_was_done(tmp_path):
    meta = {"sender": {"id": "7", "name": "Ada"}, "sent": "2026-02-10T10:00:00+00:00", "tz": "UTC"}
    async with tapes(tmp_path) as store:
        await store.create_tape(TAPE, "The *boiler*")
        await store.append_many(
            TAPE,
            [
                anchor("session/start", {"owner": "human"}, ts="2026-02-10T09:00:00+00:00"),
                message(
                    "user",
                    "What does it say?\nThe label.",
                    attachments=[{"kind": "image", "name": "label.png", "note": "too large"}],
                    **meta,
                ),
                tool_call(
                    "Let me look.", [{"id": "c", "name": "memory.recall", "arguments": "{}"}]
                ),
                tool_result("c", "memory.recall", "- found\n- twice"),
                message("assistant", "12 bar", ts="2026-02-10T10:01:00+00:00"),
                event("turn.end", {"status": "ok"}),
                message("user", "It says 13", edits="m1", replaces=3, **meta),
                anchor(
                    "session/new",
                    {"summary": "The boiler was discussed.", "next_steps": ["call the plumber"]},
                    ts="2026-02-11T09:00:00+00:00",
                ),
            ],
        )
        await store.archive(TAPE)
        shown = (await export(store, TAPE, "markdown")).decode()
    assert shown == (
        "# The \\*boiler\\*\n\nThe session `telegram:42`, as its tape has it.\n"
        "\n## session/start, 2026-02-10 09:00\n"
        "\n**Ada** (2026-02-10 10:00, #3)\n\n> What does it say?\n> The label.\n"
        "\n- image `label.png` (too large)\n"
        f"\n**tapebot** ({_ts(shown, '#4')}, #4)\n\n> Let me look.\n"
        "\n- uses `memory.recall {}`\n"
        "\n- `memory.recall` answers (ok): `- found - twice`\n"
        "\n**tapebot** (2026-02-10 10:01, #6)\n\n> 12 bar\n"
        "\n**Ada** (2026-02-10 10:00, #8, in place of #3)\n\n> It says 13\n"
        "\n## session/new, 2026-02-11 09:00\n\n> The boiler was discussed.\n"
        "\n- next: call the plumber\n"
    )


def _ts(shown: str, mark: str) -> str:
    return shown.partition(f", {mark})")[0].rpartition("(")[2]


@pytest.mark.parametrize(
    "text", ["می‌خواهم", "👩‍👩‍👧", "你好\u3000世界", "a\u00a0b", "if a < b & c"]
)
def test_words_of_any_script_stay_as_they_are(text):
    assert f"> {text}\n" in rendered(message("user", text))


def test_the_transcript_of_a_tape_that_is_not_there_is_refused(tmp_path):
    from bot.core.errors import TapeNotFound

    async def missing() -> None:
        async with tapes(tmp_path) as store:
            with pytest.raises(TapeNotFound):
                await export(store, TAPE, "markdown")

    anyio.run(missing)
