"""Format the confirmation of an erasure, its buttons, and its result. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from bot.core.i18n import N_, _, ngettext, pgettext
from bot.core.text import escape_markdown
from bot.memory.erasure.erasure_candidates import ErasurePreview
from bot.memory.erasure.erasure_items import ErasureItem, list_items
from bot.memory.erasure.record_eraser import record_phrases
from bot.memory.records.attachments import one_line
from bot.memory.records.event_names import COMMAND, FILE_KEPT
from bot.memory.records.fact import Fact
from bot.memory.records.fact_words import fact_words
from bot.memory.records.transcript import message_content, shown_entry_time, speaker_label
from bot.tape.entries import TapeEntry

OUT_OF_REACH_TEXT = N_(
    "I cannot erase this platform's copy of the chat, the logs of the model's provider, or backups."
)
NOTHING_FOUND_TEXT = N_("I found nothing with this that I may erase.")
_MOST_LISTED = 10
_EXCERPT = 120
_BUTTONS = 4
"""Number of items that get a button; others are picked by number."""


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What an erasure removed."""

    facts: tuple[int, ...]
    messages: int
    entry_count: int
    refused: int = 0
    affected_records: tuple[int, int, int] = (0, 0, 0)
    files: int = 0

    def description(self) -> str:
        """Return the result as text, which never quotes what was erased."""
        facts, messages = _facts(len(self.facts)), _said_and_files(self.messages, self.files)
        parts = _joined([facts, messages, *record_phrases(self.affected_records)])
        places = ngettext(
            "{n} place that repeated them", "{n} places that repeated them", self.entry_count
        )
        text = _("Forgotten: {parts} and {places}.", parts=parts, places=places)
        if self.refused:
            text += f" {_others(self.refused)}"
        return f"{text} {_(OUT_OF_REACH_TEXT)}"


def confirmation_text(
    preview: ErasurePreview, timezone: tzinfo | None, *, picked: bool = False
) -> str:
    """Return the Markdown that asks for confirmation: numbered items and all other effects."""
    items = list(enumerate(list_items(preview), 1))
    going = [f"{at}. {_item(item, preview, timezone)}" for at, item in items if not item.is_kept]
    kept = [f"{at}. {_item(item, preview, timezone)}" for at, item in items if item.is_kept]
    beside = (
        _(
            "No message has all of these words. A search finds these, which stay unless you pick them:"
        )
        if preview.near
        else _("From the same message, and kept unless you pick it:")
    )
    if preview.is_empty:
        return "\n\n".join([beside, "\n".join(kept)])
    parts = [_("This would be erased for good:"), *(["\n".join(going)] if going else ())]
    shared = len(preview.closure.facts) - len(preview.facts)
    if not preview.facts and shared > 0:
        parts.append(
            ngettext(
                "{n} record of facts that have ended or are shared.",
                "{n} records of facts that have ended or are shared.",
                shared,
            )
        )
    if preview.message_count:
        parts.append(_in_all(preview.message_count, preview.closure.file_count))
    parts += _beside(preview)
    everything = _(
        "Everything that repeats it is erased, too: notes, history, earlier versions of memory, "
        "answers and lists. This cannot be undone."
    )
    parts.append(f"{everything} {_(OUT_OF_REACH_TEXT)}")
    if preview.not_permitted_count:
        parts.append(_others(preview.not_permitted_count))
    if kept and not picked:
        parts += [beside, "\n".join(kept)]
    return "\n\n".join(parts)


def question_summary(preview: ErasurePreview) -> str:
    """Return what a confirmation asks, for the model: counts, without the words."""
    said = _said_and_files(preview.message_count, preview.closure.file_count)
    parts = [_facts(len(preview.facts)), said, *record_phrases(preview.affected_records)]
    kept = sum(item.is_kept for item in list_items(preview))
    items = f"{kept} item{'s' * (kept != 1)}"  # for the model
    more = f"; {items} beside stay unless picked" if kept else ""  # for the model
    return (
        # for the model
        f"Found: {', '.join(parts)}{more}. Nothing is erased yet: below your answer the user sees "
        "the list and is asked to confirm with a button or a plain yes."
    )


def _item(item: ErasureItem, preview: ErasurePreview, timezone: tzinfo | None) -> str:
    facts = {fact.id: fact for fact in (*preview.facts, *preview.facts_of_same_message)}
    if item.kind in ("fact", "same"):
        return _fact(facts[item.facts[0]])
    if item.kind == "facts":
        return ngettext("{n} more fact", "{n} more facts", len(item.facts))
    if item.kind == "held":
        return _joined(record_phrases(preview.affected_records))
    if item.kind == "messages":
        more = preview.message_count - len(preview.listed_messages)
        return ngettext("{n} more message", "{n} more messages", more)
    entry = {**preview.listed_messages, **preview.near}[item.location]
    if entry.name == FILE_KEPT:
        return _("File `{name}`", name=entry.data.get("name"))
    told = one_line(_said(entry), _EXCERPT) or _("(a file)")
    author = f"{shown_entry_time(entry, timezone)}, {escape_markdown(speaker_label(entry))}"
    return _("Message of {author}: {text}", author=author, text=escape_markdown(told))


def _fact(fact: Fact) -> str:
    text = escape_markdown(one_line(fact_words(fact, None), _EXCERPT))
    return _("{text} (fact {number})", text=text, number=fact.id)


def _beside(preview: ErasurePreview) -> Iterator[str]:
    """Yield the effects beyond the items."""
    if made := len(preview.closure.summaries):
        yield ngettext(
            "{n} summary in the history that was made from it.",
            "{n} summaries in the history that were made from it.",
            made,
        )
    if preview.repeated:
        yield ngettext(
            "{n} place in my answers and notes holds these words.",
            "{n} places in my answers and notes hold these words.",
            preview.repeated,
        )
    if preview.facts_without_evidence:
        told = _("These facts stay believed, but lose all their evidence:")
        yield f"{told}\n{_listed([_fact(fact) for fact in preview.facts_without_evidence])}"


def _listed(texts: Sequence[str]) -> str:
    shown = [f"- {text}" for text in texts[:_MOST_LISTED]]
    if len(texts) > _MOST_LISTED:
        more = ngettext("and {n} more", "and {n} more", len(texts) - _MOST_LISTED)
        shown.append(f"- {more}")
    return "\n".join(shown)


def confirmation_instructions(
    request: int, preview: ErasurePreview, picked: Sequence[int] = ()
) -> str:
    """Return how to confirm a request, or part of it, by command: some channels show no buttons."""
    numbers = "".join(f" {one}" for one in picked)
    confirm = _(
        "Nothing is erased yet. To erase it for good, say yes or send `{command}`.",
        command=f"/memory forget yes {request}{numbers}",
    )
    items = list_items(preview)
    if picked or (len(items) < 2 and not preview.near):
        return confirm
    direct = [number for number, item in enumerate(items, 1) if item.kind == "fact"]
    example = " ".join(map(str, direct[:_MOST_LISTED] or [1]))
    choose = _(
        "To choose yourself, send the numbers of all that is to go, such as `{command}`. I show "
        "what is erased and what is left before I erase anything.",
        command=f"/memory forget only {request} {example}",
    )
    return choose if preview.is_empty else f"{confirm} {choose}"


def confirmation_buttons(
    request: int, preview: ErasurePreview, picked: Sequence[int] = ()
) -> Iterator[tuple[str, str]]:
    """Yield label and command of each button that confirms a request, or part of it."""
    numbers = "".join(f" {one}" for one in picked)
    if not preview.is_empty:
        yield _("Erase"), f"/memory forget yes {request}{numbers}"
    items = list_items(preview)
    single = len(preview.near) or sum(not item.is_kept for item in items)
    for one in (
        range(1, 1 + min(single, _BUTTONS))
        if not picked and (preview.near or len(items) > 1)
        else ()
    ):
        yield _("Only {number}", number=one), f"/memory forget only {request} {one}"
    yield _("Keep it"), f"/memory forget no {request}"


def _others(refused: int) -> str:
    return ngettext(
        "{n} other match is not yours alone and stays. Only an owner may erase what others said.",
        "{n} other matches are not yours alone and stay. Only an owner may erase what others said.",
        refused,
    )


def _said(entry: TapeEntry) -> str:
    if entry.name == COMMAND:
        return f"/{entry.data.get('name')} {entry.data.get('arguments')}"
    return message_content(entry)


def _in_all(whole: int, files: int) -> str:
    """Return the number of messages and files in a sentence; the answers to messages go with them."""
    if whole == files:
        return ngettext("{n} file in all.", "{n} files in all.", files)
    if files:
        return _("{items} in all, with the answers to them.", items=_said_and_files(whole, files))
    return ngettext(
        "{n} message in all, with the answers to it.",
        "{n} messages in all, with the answers to them.",
        whole,
    )


def _said_and_files(whole: int, files: int) -> str:
    """Return the number of messages, and of files if there are any."""
    if not files:
        return _messages(whole)
    parts = [_messages(whole - files)] if whole > files else []
    return _joined([*parts, ngettext("{n} file", "{n} files", files)])


def _facts(number: int) -> str:
    return ngettext("{n} fact", "{n} facts", number)


def _messages(number: int) -> str:
    return ngettext("{n} message", "{n} messages", number)


def _joined(items: Sequence[str]) -> str:
    between = pgettext("items of a list", "{first}, {second}")
    return between.removeprefix("{first}").removesuffix("{second}").join(items)
