"""Read ChatGPT's data export: an archive or a folder with ``conversations.json``, or its shards.

A conversation is a tree of nodes (``mapping``), because people edit their messages and let answers be
written again. What ChatGPT shows is the way from ``current_node`` to the root.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from bot.core.i18n import N_, _
from bot.memory.records.evidence import MEMORY_PAUSED
from bot.transfer.foreign import ForeignFile, find_files, read_objects
from bot.transfer.imported import (
    ImportedSession,
    Reading,
    attachment,
    dict_of,
    dicts_in,
    newest_leaf,
    parse_time,
    path_to,
    text_and_files,
)

_NAMES = ("conversations.json", "conversations-*.json", "*.zip")
_PROFILES = {
    "about_user_message": ("user_profile", "Custom instructions: about you"),  # for the tape
    "about_model_message": ("user_instructions", "Custom instructions: answers"),  # for the tape
}
_CITED, _CITED_END = "\ue200", "\ue201"


def read_chatgpt(path: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Yield the conversations of an export, in the order of its files. Blocking."""
    for file in find_files(path, [*_NAMES, *(f"*/{name}" for name in _NAMES)], reading.report):
        for number, value in read_objects(file):
            if isinstance(value.get("mapping"), dict):
                yield from _conversation(value, reading, file, number)
            else:
                file.report(
                    _("object {number} is no conversation of ChatGPT; skipped", number=number)
                )


def _conversation(
    value: dict[str, Any], reading: Reading, file: ForeignFile, number: int
) -> Iterator[ImportedSession]:
    key = value.get("conversation_id") or value.get("id")
    if not isinstance(key, str) or not key.strip():
        named = f"{value.get('title')}\n{value.get('create_time')}"
        key = f"unnamed-{sha256(named.encode('utf-8', 'replace')).hexdigest()[:12]}"
    session = reading.session(key, f"{file.shown}, conversation {number}")  # for the tape
    if session is None:
        return
    mapping = value["mapping"]
    nodes = linear_nodes(mapping, value.get("current_node"))
    shown = set(nodes)
    others = sum(_message(mapping[one]) is not None for one in mapping if one not in shown)
    if others:
        reading.hidden[N_("in branches that were left")] += others
    moment = parse_time(value.get("create_time"), reading.timezone)
    moment = moment or parse_time(value.get("update_time"), reading.timezone) or file.changed
    paused = {MEMORY_PAUSED: True} if value.get("is_do_not_remember") is True else {}
    for message in filter(None, (_message(mapping[one]) for one in nodes)):
        moment = parse_time(message.get("create_time"), reading.timezone) or moment
        _note_memory(message, reading, moment)
        if (why := _hidden_reason(message)) is not None:
            reading.hidden[why] += 1
            continue
        text, files = _text_and_files(message)
        role = str(dict_of(message, "author").get("role"))
        reading.add_message(session, role, text, ts=moment, files=files, **paused)
    yield from reading.finished(session)


def linear_nodes(mapping: dict[str, Any], current: object) -> list[str]:
    """Return the ids of the nodes that ChatGPT shows, first to last.

    A node whose parent is missing continues with the node that names it as a child. Without a usable
    ``current_node`` the newest leaf counts.
    """
    nodes = {one: node for one, node in mapping.items() if isinstance(node, dict)}
    named: dict[str, str] = {}
    times: dict[str, float] = {}
    for one, node in nodes.items():
        children = node.get("children")
        for child in children if isinstance(children, list) else ():
            if isinstance(child, str):
                named.setdefault(child, one)
        moment = (_message(node) or {}).get("create_time")
        times[one] = moment if isinstance(moment, (int, float)) else 0.0
    parents = {}
    for one, node in nodes.items():
        parent = node.get("parent")
        is_known = isinstance(parent, str) and parent in nodes
        parents[one] = str(parent) if is_known else named.get(one, "")
    leaf = current if isinstance(current, str) and current in parents else None
    return path_to(leaf or newest_leaf(parents, times), parents)


def _hidden_reason(message: dict[str, Any]) -> str | None:
    """Return why ChatGPT does not show a message; None if it does."""
    role = dict_of(message, "author").get("role")
    kind = dict_of(message, "content").get("content_type")
    if kind in ("user_editable_context", "model_editable_context"):
        return N_("custom instructions")
    if role == "system":
        return N_("system messages")
    if kind in ("thoughts", "reasoning_recap") or message.get("channel") == "analysis":
        return "thoughts"
    if role not in ("user", "assistant") or message.get("recipient") not in (None, "all"):
        return N_("to and from tools")
    if dict_of(message, "metadata").get("is_visually_hidden_from_conversation"):
        return N_("hidden by ChatGPT")
    return None


def _note_memory(message: dict[str, Any], reading: Reading, moment: str) -> None:
    """Add what a message says of ChatGPT's memory: saved memories and custom instructions."""
    if message.get("recipient") == "bio":
        text = _text_and_files(message)[0]
        if not text.lstrip().startswith("{"):
            reading.add_memory(text, when=moment)
        return
    content = dict_of(message, "content")
    told = dict_of(dict_of(message, "metadata"), "user_context_message_data")
    is_profile = content.get("content_type") in ("user_editable_context", "model_editable_context")
    for clean, (shown, subject) in _PROFILES.items():
        given = told.get(clean)
        if not isinstance(given, str) and is_profile:
            given = _fenced(content.get(shown))
        if isinstance(given, str):
            reading.add_memory(given, when=moment, subject=subject)


def _fenced(text: object) -> str:
    """Return the part of a text between its first and last fence; all of it without fences."""
    if not isinstance(text, str):
        return ""
    parts = text.split("```")
    return "```".join(parts[1:-1]) if len(parts) > 2 else text


def _text_and_files(message: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    content = dict_of(message, "content")
    texts, files = text_and_files(content.get("parts"), Counter())
    if not texts:
        told = (content.get(name) for name in ("text", "result"))
        texts = [one for one in told if isinstance(one, str)][:1]
    text = _without_citations("\n".join(filter(None, texts))).strip()
    if content.get("content_type") == "code" and text:
        language = str(content.get("language") or "")
        text = f"```{language if language.isalnum() and language != 'unknown' else ''}\n{text}\n```"
    named = [one.get("name") for one in dicts_in(dict_of(message, "metadata").get("attachments"))]
    return text, files + [attachment(name) for name in named if isinstance(name, str)]


def _without_citations(text: str) -> str:
    """Return a text without the marks of its citations, which ChatGPT shows as links."""
    first, *others = text.split(_CITED)
    return first + "".join(one.partition(_CITED_END)[2] or one for one in others)


def _message(node: object) -> dict[str, Any] | None:
    found = node.get("message") if isinstance(node, dict) else None
    return found if isinstance(found, dict) else None
