"""Tell a person what would be erased, as a numbered list with buttons, and what was. Pure.

Rule: first stands what goes unless the person picks; then, under the next numbers, what stays unless
it is picked: facts from the same messages, and messages that a search found near.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from bot.core.i18n import N_, _, ngettext, pgettext
from bot.core.text import escape_markdown
from bot.memory.erasure.closure import Closure
from bot.memory.erasure.entry_eraser import RecordKey
from bot.memory.erasure.erasure_query import ErasureItem
from bot.memory.records.attachments import one_line
from bot.memory.records.event_names import COMMAND, FILE_KEPT
from bot.memory.records.fact import Fact
from bot.memory.records.fact_words import fact_words
from bot.memory.records.transcript import message_content, shown_entry_time, speaker_label

OUT_OF_REACH_TEXT = N_(
    "I cannot erase this platform's copy of the chat, the logs of the model's provider, or backups."
)
ASKED_TEXT = (
    # for the model
    "Nothing is erased yet: below your answer the user sees the list of what was found, and is asked "
    "to confirm with a button or a plain yes."
)
NOTHING_FOUND_TEXT = N_("I found nothing with this that I may erase.")
_MOST_IN_EXAMPLE = 10
_EXCERPT = 120
_BUTTONS = 4
"""Number of items that get a button; others are picked by number."""


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What an erasure removed; of records the shared values, beliefs, and problems with notes."""

    facts: tuple[int, ...]
    messages: int
    entry_count: int
    refused: int = 0
    affected_records: tuple[int, int, int] = (0, 0, 0)
    files: int = 0

    def description(self) -> str:
        """Return the result as text, which never quotes what was erased."""
        parts = [_facts(len(self.facts)), _said_and_files(self.messages, self.files)]
        places = ngettext(
            "{n} place that repeated them", "{n} places that repeated them", self.entry_count
        )
        told = _joined([*parts, *_record_phrases(self.affected_records)])
        text = _("Forgotten: {parts} and {places}.", parts=told, places=places)
        if self.refused:
            text += f" {_others(self.refused)}"
        return f"{text} {_(OUT_OF_REACH_TEXT)}"


def list_items(found: Closure) -> list[ErasureItem]:
    """Return the items of a question, in the order in which they are shown: last what is kept."""
    items = [ErasureItem("fact", (fact.id,)) for fact in found.home_facts()]
    items += [ErasureItem("message", location=place) for place in found.listed]
    if len(found.counted()) > len(found.listed):
        items.append(ErasureItem("messages"))
    if found.records:
        items.append(ErasureItem("held"))
    _bare, beside = found.staying_facts()
    items += [ErasureItem("same", (one.id,)) for one in beside]
    return items + [ErasureItem("near", location=place) for place in found.near]


def question(
    request: int, found: Closure, timezone: tzinfo | None, picked: Sequence[int] = ()
) -> tuple[str, list[tuple[str, str]]]:
    """Return the Markdown that asks for confirmation, and label and command of each button.

    Args:
        request: Id of the entry that asks.
        found: What would be erased.
        timezone: For the times of messages.
        picked: The numbers that a person has picked of an earlier question.
    """
    going, kept = list[str](), list[str]()
    items = list_items(found)
    for number, item in enumerate(items, 1):
        (kept if item.is_kept else going).append(f"{number}. {_item(item, found, timezone)}")
    near = N_(
        "No message has all of these words. A search finds these, which stay unless you pick them:"
    )
    same = N_("From the same message, and kept unless you pick it:")
    parts, beside = list[str](), [_(near if found.near else same), "\n".join(kept)]
    if not found.is_empty:
        parts = [_("This would be erased for good:"), *(["\n".join(going)] if going else ())]
        parts += _effects(found)
    parts += beside if kept and not picked else ()
    yes = f"/memory forget yes {request}{''.join(f' {one}' for one in picked)}"
    confirm = _(
        "Nothing is erased yet. To erase it for good, say yes or send `{command}`.", command=yes
    )
    buttons, last = (
        [] if found.is_empty else [(_("Erase"), yes)],
        [] if found.is_empty else [confirm],
    )
    if not picked and (found.near or len(items) > 1):
        # Some channels show no buttons.
        direct = [number for number, item in enumerate(items, 1) if item.kind == "fact"]
        example = " ".join(map(str, direct[:_MOST_IN_EXAMPLE] or [1]))
        choose = _(
            "To choose yourself, send the numbers of all that is to go, such as `{command}`. I show "
            "what is erased and what is left before I erase anything.",
            command=f"/memory forget only {request} {example}",
        )
        last.append(choose)
        buttons += [
            (_("Only {number}", number=one), f"/memory forget only {request} {one}")
            for one in range(1, 1 + min(len(found.near) or len(going), _BUTTONS))
        ]
    buttons.append((_("Keep it"), f"/memory forget no {request}"))
    return "\n\n".join([*parts, " ".join(last)]), buttons


def _effects(found: Closure) -> Iterator[str]:
    """Yield the effects beyond the items."""
    if found.facts and not found.home_facts():
        yield ngettext(
            "{n} record of facts that have ended or are shared.",
            "{n} records of facts that have ended or are shared.",
            len(found.facts),
        )
    if found.counted():
        told = _said_and_files(len(found.counted()), found.file_count)
        yield _("{items} in all, with the answers.", items=told)
    if found.summaries:
        yield ngettext(
            "{n} summary in the history that was made from it.",
            "{n} summaries in the history that were made from it.",
            found.summaries,
        )
    if found.repeated:
        yield ngettext(
            "{n} place in my answers and notes holds these words.",
            "{n} places in my answers and notes hold these words.",
            found.repeated,
        )
    bare, _beside = found.staying_facts()
    if bare:
        told = "\n".join(f"- {_fact(fact)}" for fact in bare)
        yield f"{_('These facts stay believed, but lose all their evidence:')}\n{told}"
    everything = _(
        "Everything that repeats it is erased, too: notes, history, earlier versions of memory, "
        "answers and lists. This cannot be undone."
    )
    yield f"{everything} {_(OUT_OF_REACH_TEXT)}"
    if found.not_permitted:
        yield _others(len(found.not_permitted))


def _item(item: ErasureItem, found: Closure, timezone: tzinfo | None) -> str:
    if item.kind in ("fact", "same"):
        return _fact(found.scopes[found.home][item.facts[0]])
    if item.kind == "held":
        return _joined(_record_phrases(count_records(found.records)))
    if item.kind == "messages":
        more = len(found.counted()) - len(found.listed)
        return ngettext("{n} more message", "{n} more messages", more)
    entry = {**found.listed, **found.near}[item.location]
    if entry.name == FILE_KEPT:
        return _("File `{name}`", name=entry.data.get("name"))
    said = f"/{entry.data.get('name')} {entry.data.get('arguments')}"
    told = one_line(said if entry.name == COMMAND else message_content(entry), _EXCERPT)
    author = f"{shown_entry_time(entry, timezone)}, {escape_markdown(speaker_label(entry))}"
    told = escape_markdown(told) or _("(a file)")
    return _("Message of {author}: {text}", author=author, text=told)


def _fact(fact: Fact) -> str:
    text = escape_markdown(one_line(fact_words(fact, None), _EXCERPT))
    return _("{text} (fact {number})", text=text, number=fact.id)


def _others(refused: int) -> str:
    return ngettext(
        "{n} other match is not yours alone and stays. Only an owner may erase what others said.",
        "{n} other matches are not yours alone and stay. Only an owner may erase what others said.",
        refused,
    )


def _said_and_files(whole: int, files: int) -> str:
    """Return the number of messages, and of files if there are any."""
    parts = [_messages(whole - files)] if whole > files or not files else []
    return _joined([*parts, *([ngettext("{n} file", "{n} files", files)] if files else [])])


def _facts(number: int) -> str:
    return ngettext("{n} fact", "{n} facts", number)


def _messages(number: int) -> str:
    return ngettext("{n} message", "{n} messages", number)


def count_records(records: Collection[RecordKey]) -> tuple[int, int, int]:
    """Return the numbers of shared values, beliefs, and problems with notes."""
    kinds = [kind for _, kind, _ in records]
    return kinds.count("value"), kinds.count("belief"), kinds.count("notes")


def _record_phrases(counts: tuple[int, int, int]) -> list[str]:
    values, beliefs, notes = counts
    phrases = (
        (values, ngettext("a shared value", "{n} shared values", values)),
        (beliefs, ngettext("a belief", "{n} beliefs", beliefs)),
        (notes, ngettext("a problem's notes", "the notes of {n} problems", notes)),
    )
    return [text for number, text in phrases if number]


def _joined(items: Sequence[str]) -> str:
    between = pgettext("items of a list", "{first}, {second}")
    return between.removeprefix("{first}").removesuffix("{second}").join(items)
