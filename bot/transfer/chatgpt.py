"""Import ChatGPT's data export: an archive or a folder with ``conversations.json``, or its shards.

A conversation is a tree of nodes (``mapping``), because people edit their messages and let answers be
written again. What ChatGPT shows is the way from ``current_node`` to the root.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from bot.core.i18n import N_, _
from bot.core.patterns import LazyPattern
from bot.memory.records.evidence import MEMORY_PAUSED
from bot.transfer.conversion import attachment, parse_time
from bot.transfer.export_files import ExportFile, find_files
from bot.transfer.imported import ImportedSession
from bot.transfer.json_stream import read_objects
from bot.transfer.reading import Reading, newest_leaf, path_to

BOT = "chatgpt"

_FILES = LazyPattern(r"conversations(-\d{1,9})?\.json")
_THOUGHTS = frozenset({"thoughts", "reasoning_recap"})
_PROFILES = frozenset({"user_editable_context", "model_editable_context"})
_CITED, _CITED_END = "\ue200", "\ue201"
_KINDS = {"image_asset_pointer": "image", "audio_asset_pointer": "voice"}


def read_chatgpt(path: Path, reading: Reading) -> Iterator[ImportedSession]:
    """Yield the conversations of an export, in the order of its files. Blocking."""
    for file in find_files(path, _is_wanted, reading.report):

        def report(problem: str, file: ExportFile = file) -> None:
            reading.report(f"{file.shown}: {problem}")

        with file.open(report) as stream:
            for number, value in read_objects(stream, report):
                where = f"{file.shown}, conversation {number}"  # for the tape
                if not isinstance(value.get("mapping"), dict):
                    report(
                        _("object {number} is no conversation of ChatGPT; skipped", number=number)
                    )
                    continue
                session = _conversation(value, reading, where, file.changed)
                if session is not None and session.entries:
                    yield session
                elif session is not None:
                    reading.skipped += 1


def _is_wanted(_unused: str, name: str) -> bool:
    return _FILES.fullmatch(name) is not None


def _conversation(
    value: dict[str, Any], reading: Reading, where: str, changed: str
) -> ImportedSession | None:
    key = value.get("conversation_id") or value.get("id")
    if not isinstance(key, str) or not key.strip():
        named = f"{value.get('title')}\n{value.get('create_time')}"
        key = f"unnamed-{sha256(named.encode('utf-8', 'replace')).hexdigest()[:12]}"
    session = reading.session(key, where)
    if session is None:
        return None
    mapping = value["mapping"]
    nodes = linear_nodes(mapping, value.get("current_node"))
    shown = set(nodes)
    others = sum(_message(mapping[one]) is not None for one in mapping if one not in shown)
    if others:
        reading.hide(N_("in branches that were left"), others)
    moment = parse_time(value.get("create_time"), reading.timezone)
    moment = moment or parse_time(value.get("update_time"), reading.timezone) or changed
    paused = {MEMORY_PAUSED: True} if value.get("is_do_not_remember") is True else {}
    for one in nodes:
        message = _message(mapping[one])
        if message is None:
            continue
        moment = parse_time(message.get("create_time"), reading.timezone) or moment
        _note_memory(message, reading, moment)
        why = hidden_reason(message)
        if why is not None:
            reading.hide(why)
            continue
        text, files = _text_and_files(message)
        if not text and not files:
            reading.hide("empty")
            continue
        role = str(_dict(message, "author").get("role"))
        reading.add_message(session, role, text, ts=moment, files=files, **paused)
    return session


def linear_nodes(mapping: dict[str, Any], current: object) -> list[str]:
    """Return the ids of the nodes that ChatGPT shows, first to last.

    A node whose parent is missing continues with the node that names it as a child. Without a usable
    ``current_node`` the newest leaf counts.
    """
    parents: dict[str, str] = {}
    times: dict[str, float] = {}
    named: dict[str, str] = {}
    for one, node in mapping.items():
        if not isinstance(node, dict):
            continue
        parent = node.get("parent")
        parents[one] = parent if isinstance(parent, str) else ""
        moment = (_message(node) or {}).get("create_time")
        times[one] = float(moment) if isinstance(moment, (int, float)) else 0.0
        children = node.get("children")
        for child in children if isinstance(children, list) else []:
            if isinstance(child, str):
                named.setdefault(child, one)
    for one, parent in parents.items():
        if parent not in parents and one in named:
            parents[one] = named[one]
    leaf = current if isinstance(current, str) and current in parents else None
    return path_to(leaf or newest_leaf(parents, times), parents)


def hidden_reason(message: dict[str, Any]) -> str | None:
    """Return why ChatGPT does not show a message; None if it does."""
    role = _dict(message, "author").get("role")
    kind = _dict(message, "content").get("content_type")
    if kind in _PROFILES:
        return N_("custom instructions")
    if role == "system":
        return N_("system messages")
    if kind in _THOUGHTS or message.get("channel") == "analysis":
        return "thoughts"
    if role not in ("user", "assistant") or message.get("recipient") not in (None, "all"):
        return N_("to and from tools")
    if _dict(message, "metadata").get("is_visually_hidden_from_conversation"):
        return N_("hidden by ChatGPT")
    return None


def _note_memory(message: dict[str, Any], reading: Reading, moment: str) -> None:
    """Add what a message says of ChatGPT's memory: saved memories and custom instructions."""
    content, metadata = _dict(message, "content"), _dict(message, "metadata")
    if message.get("recipient") == "bio":
        text, _unused = _text_and_files(message)
        if not text.lstrip().startswith("{"):
            reading.add_memory(text, when=moment)
        return
    told = _dict(metadata, "user_context_message_data")
    for clean, shown, subject in (
        ("about_user_message", "user_profile", "Custom instructions: about you"),  # for the tape
        # for the tape
        ("about_model_message", "user_instructions", "Custom instructions: answers"),
    ):
        given = told.get(clean)
        if not isinstance(given, str) and content.get("content_type") in _PROFILES:
            given = _fenced(content.get(shown))
        if isinstance(given, str):
            reading.add_memory(given, when=moment, subject=subject)


def _fenced(text: object) -> str:
    """Return the part of a text between its first and last fence; all of it without fences."""
    if not isinstance(text, str):
        return ""
    parts = text.split("```")
    return "```".join(parts[1:-1]) if len(parts) > 2 else text


def _text_and_files(message: dict[str, Any]) -> tuple[str, list[dict[str, str]]]:
    content = _dict(message, "content")
    texts: list[str] = []
    files: list[dict[str, str]] = []
    parts = content.get("parts")
    for part in parts if isinstance(parts, list) else []:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif isinstance(part, dict):
            kind = _KINDS.get(str(part.get("content_type")), "file")
            files.append(attachment(kind, kind))
    for name in ("text", "result"):
        if not texts and isinstance(content.get(name), str):
            texts.append(content[name])
    text = _without_citations("\n".join(filter(None, texts))).strip()
    if content.get("content_type") == "code" and text:
        language = str(content.get("language") or "")
        text = f"```{language if language.isalnum() and language != 'unknown' else ''}\n{text}\n```"
    attached = _dict(message, "metadata").get("attachments")
    named = [one for one in attached if isinstance(one, dict)] if isinstance(attached, list) else []
    files += [attachment(one["name"]) for one in named if isinstance(one.get("name"), str)]
    return text, files


def _without_citations(text: str) -> str:
    """Return a text without the marks of its citations, which ChatGPT shows as links."""
    first, *others = text.split(_CITED)
    return first + "".join(one.partition(_CITED_END)[2] or one for one in others)


def _message(node: object) -> dict[str, Any] | None:
    found = node.get("message") if isinstance(node, dict) else None
    return found if isinstance(found, dict) else None


def _dict(value: dict[str, Any], name: str) -> dict[str, Any]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}
