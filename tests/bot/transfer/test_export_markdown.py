"""A transcript is for people, and no text in it is more than text."""

from __future__ import annotations

from exchange_files import UTC
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from sampling import examples

from bot.memory.records.event_names import HISTORY_EVENT
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
_SIGNS = [
    "# ", "\n", "\r", "> ", "```", "~~~", "`", "<script>", "<!--", "]]>", "[x]: http://e", "***", "---",
    "===", "- ", "1. ", "    ", "\t", "</blockquote>", "\\", "&lt;", "<", "\u2028", "\x0b", "\x1b[2J",
    "\x9b", "\u202e", "word", "![", "](", "|", "|-|", "\x00", "[x]", "\ud800", "$$",
]  # fmt: skip
_MARKUP = st.lists(st.sampled_from(_SIGNS), max_size=12).map("".join)
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
@hypothesis_settings(max_examples=examples(60))
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
