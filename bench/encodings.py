"""What a model reads of a month's memory: plain JSON beside the encoding of the compartments."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench.life import _TALK, ATTRIBUTES, Keeper, Life
from bench.month import TURNS, Month, simulate
from bench.report import Cell, Scale, Table
from bot.core.clock import format_time
from bot.memory.gate.belief_updates import belief_from_fact
from bot.memory.records.compartment_records import (
    WORKING_FIELDS,
    EpisodeEntry,
    Problem,
    SharedReference,
    WorkingSet,
)
from bot.memory.records.compression import (
    encode_episodes,
    encode_patterns,
    encode_problems,
    encode_references,
    encode_working_sets,
    render_context_packet,
    render_problems,
    render_references,
)
from bot.memory.records.episodes import episode_from_entry
from bot.tape.entries import TapeEntry
from bot.tape.stores.file import FileTapeStore

WANTED = 65
"""Per cent that the compartments' notation is to save of plain JSON."""

_PLENTY = 10_000_000
_KEPT_WHOLE = "Words of people are kept whole; the most that could be saved is all the rest."
_LANE = "fake:1"
_WEEKS = 4
_MOST = 8
"""Of each kind of thing in a working set."""

Counter = Callable[[str], int]

# Names that our own code gives; all other text in content is somebody's.
_OURS = frozenset({"role", "tool", "op", "verdict", "by", "status", "phase", "name"})


@dataclass(frozen=True, slots=True)
class Compartment:
    """Records of one kind.

    Attributes:
        name: Of the compartment.
        records: That it holds.
        encode: Writes them for the model.
        free: Which fields hold text of people and models.
        shown: Writes what the program gives a model of them, which leaves out what a model has no use
            for; None where it gives only what is found.
    """

    name: str
    records: Sequence[Any]
    encode: Callable[[Any], str]
    free: tuple[str, ...]
    shown: Callable[[Any], str] | None = None

    def plain(self) -> str:
        """Return the records as compact JSON, all fields named, times in ISO 8601."""
        return json.dumps([asdict(one) for one in self.records], separators=(",", ":"),
                          ensure_ascii=False, default=format_time)  # fmt: skip

    def texts(self) -> list[str]:
        """Return the free text that is in them, which no notation makes shorter."""
        return [
            text
            for one in self.records
            for name in self.free
            for text in _texts(getattr(one, name))
        ]


def lived(month: Month, entries: Sequence[TapeEntry], turns: int) -> list[Compartment]:
    """Return what the compartments hold of a month."""
    told = [one for entry in entries if (one := episode_from_entry(_LANE, entry)) is not None]
    said = [one for one in told if one.entry_type == "turn" and one.content["role"] == "user"]
    patterns = [belief_from_fact(fact) for fact in (*month.active, *month.ended, *month.pending)]
    sets = _working_sets(said)
    kept = [
        Compartment("working sets", sets, encode_working_sets, (
            "constraints", "assumptions", "open_questions", "partial_artifacts", "local_decisions"),
            _packets),
        Compartment("shared reference", _references(said, turns), encode_references, ("value",),
                    lambda refs: render_references(refs, _PLENTY)),
        Compartment("episodes", told, encode_episodes, ("content",)),
        Compartment("patterns", patterns, encode_patterns, ("content",)),
        Compartment("problems", _problems(sets, told), encode_problems, ("name", "summary"),
                    lambda found: render_problems(found, found[-1].problem_id)),
    ]  # fmt: skip
    return [replace(one, records=[_dated(record) for record in one.records]) for one in kept]


def _vocabularies() -> Path | None:
    """Return the folder of vocabularies that litellm carries, so that nothing is fetched."""
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"


def counters() -> dict[str, Counter | None]:
    """Return ways of counting tokens; None where a tokenizer is not installed."""
    found: dict[str, Counter | None] = {
        "characters / 4": lambda text: -(-len(text) // 4),
        "o200k_base": None,
        "Claude 2's": None,
    }
    newer, folder = o200k(), _vocabularies()
    if newer is None or folder is None:
        return found
    from tokenizers import Tokenizer

    older = Tokenizer.from_file(str(folder / "anthropic_tokenizer.json"))
    found["o200k_base"] = lambda text: len(newer(text))
    found["Claude 2's"] = lambda text: len(older.encode(text, add_special_tokens=False).ids)
    return found


def o200k() -> Callable[[str], Sequence[int]] | None:
    """Return what cuts a text into tokens of ``o200k_base``; None if it is not installed."""
    folder = _vocabularies()
    if folder is None:
        return None
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    import tiktoken

    encoding = tiktoken.get_encoding("o200k_base")
    return lambda text: encoding.encode(text, disallowed_special=())


def _vocabularies() -> Path | None:
    package = find_spec("litellm")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"


async def measure(scale: Scale) -> list[Table]:
    """Live a month, and write down what its memory holds in both ways."""
    turns = scale.pick(TURNS, 300)
    month = await simulate(scale.work / "month", Keeper(), turns=turns)
    store = FileTapeStore(scale.work / "month" / "tapes", sync=False)
    entries = await store.read(_LANE)
    await store.close()
    kept = lived(month, entries, turns)
    return [*_tables(kept), _by_length(kept), _of_real_length()]


def _tables(kept: Sequence[Compartment]) -> Iterator[Table]:
    head = ["compartment", "records", "as JSON", "encoded", "saved, %", "free text in both",
            "saved of the rest, %", "most that could be saved, %", "as a model is shown it",
            "saved so, %"]  # fmt: skip
    for name, count in counters().items():
        rows: list[list[Cell]] = []
        if count is not None:
            rows = [_row(one, count) for one in kept]
            sums = [sum(int(row[at] or 0) for row in rows) for at in (1, 2, 3, 5)]
            rows.append(_figures("all", *sums))
        notes = [*_why_not(rows), _KEPT_WHOLE] if rows else ["The package is not installed."]
        yield Table(f"What a month's memory costs a model, in tokens by {name}", head, rows, notes)


def _why_not(rows: Sequence[Sequence[Cell]]) -> Iterator[str]:
    """Say of each row below the goal why it is."""
    for row in rows:
        saved, most = float(row[4] or 0), float(row[7] or 0)
        if saved >= WANTED:
            continue
        if most < WANTED:
            yield (
                f"{row[0]}: {WANTED} % cannot be reached by any notation: {100 - most:.0f} % of the JSON is "
                f"words of people, which are kept; {saved:.0f} % of at most {most:.0f} % is saved."
            )
        else:
            yield (
                f"{row[0]}: {WANTED} % is not reached without loss: beside the words, ids and times to the "
                "millisecond are kept, so that each record is read back as it was."
            )


def _row(kept: Compartment, count: Counter) -> list[Cell]:
    free = sum(map(count, kept.texts()))
    plain, short = count(kept.plain()), count(kept.encode(kept.records))
    row = _figures(kept.name, len(kept.records), plain, short, free)
    if kept.shown is None:
        return row
    shown = count(kept.shown(kept.records))
    return [*row, shown, _saved(plain, shown)]


def _figures(name: str, records: int, plain: int, short: int, free: int) -> list[Cell]:
    rest = _saved(plain - free, short - free)
    return [name, records, plain, short, _saved(plain, short), free, rest, _saved(plain, free)]


def _saved(before: int, after: int) -> float:
    return 100 * (1 - after / before)


def _by_length(kept: Sequence[Compartment]) -> Table:
    """Say the same turns at greater length: text is kept whole, so the share saved falls."""
    talk = [one for one in kept[2].records if one.entry_type == "turn"][-600:]
    rows: list[list[Cell]] = []
    for length in (25, 50, 100, 200, 400, 1_600):
        dice = random.Random(length)
        longer = [
            replace(one, content={**one.content, "content": _of_length(length, dice)})
            for one in talk
        ]
        again = replace(kept[2], records=longer)
        counted = [
            _saved(count(again.plain()), count(again.encode(longer))) if count else None
            for count in counters().values()
        ]
        rows.append([f"{length} characters", *counted])
    head = ["text of each turn", *(f"saved, % by {name}" for name in counters())]
    note = f"No notation saves {WANTED} % where the texts are most of what is read."
    return Table("Turns by how long their texts are", head, rows, [note])


def _of_real_length() -> Table:
    """Compare working sets as people have them: 3 to 12 items of 40 to 200 characters."""
    rows: list[list[Cell]] = []
    count = counters()["characters / 4"]
    assert count is not None
    for number in (3, 6, 12):
        for length in (40, 100, 200):
            dice = random.Random(1_000 * number + length)
            sets = [_full(f"p{at}", number, length, dice) for at in range(1, 51)]
            plain = sum(count(json.dumps(asdict(one), separators=(",", ":"), ensure_ascii=False,
                                         default=format_time)) for one in sets)  # fmt: skip
            short = sum(count(encode_working_sets([one])) for one in sets)
            shown = sum(count(_packets([one])) for one in sets)
            free = sum(count("".join(_words_of(one))) for one in sets)
            rows.append([f"{number} items of {length} characters", plain, short,
                         _saved(plain, short), shown, _saved(plain, shown), _saved(plain, free)])  # fmt: skip
    head = ["working set", "as JSON", "encoded", "saved, %", "as a model is shown it",
            "saved so, %", "most that could be saved, %"]  # fmt: skip
    note = (
        f"{WANTED} % is out of reach wherever the words are more than {100 - WANTED} % of the JSON; to save "
        "more than the last column is to leave out words of people, which are kept whole."
    )
    return Table(
        "Fifty working sets of real length each, in tokens by characters / 4", head, rows, [note]
    )


def _full(problem: str, number: int, length: int, dice: random.Random) -> WorkingSet:
    """Return a working set with so many items of such a length, of all kinds in turn."""
    texts = [_of_length(length, dice) for _ in range(number)]
    made = datetime(2026, 2, 10, 9, dice.randrange(60), dice.randrange(60),
                    dice.randrange(1_000) * 1_000, UTC)  # fmt: skip
    return WorkingSet(
        problem,
        _LANE,
        made,
        made + timedelta(hours=2),
        {"must": texts[0::6], "must_not": texts[1::6]},
        [{"a": text, "confidence": 0.8} for text in texts[2::6]],
        texts[3::6],
        {f"draft {at}": text for at, text in enumerate(texts[5::6])},
        [{"d": text[: length // 2], "why": text[length // 2 :]} for text in texts[4::6]],
    )


def _words_of(working: WorkingSet) -> Iterator[str]:
    for name in WORKING_FIELDS:
        yield from _texts(getattr(working, name))


def _packets(sets: Sequence[WorkingSet]) -> str:
    """Return what a model is shown while it works on each: its packet, whole."""
    return "\n".join(render_context_packet(one, one.problem_id, _PLENTY) for one in sets)


def _of_length(length: int, dice: random.Random) -> str:
    parts: list[str] = []
    while sum(map(len, parts)) < length:
        parts.append(dice.choice(_TALK))
    return " ".join(parts)[:length].strip()


def _texts(held: Any) -> Iterator[str]:
    if isinstance(held, str):
        yield held
    elif isinstance(held, dict):
        for key, one in held.items():
            if key not in _OURS:
                yield from _texts(one)
    elif isinstance(held, list):
        for one in held:
            yield from _texts(one)


def _references(said: Sequence[EpisodeEntry], turns: int) -> list[SharedReference]:
    """Return what the person's attributes are at the end, each change a version of its own."""
    life, found = Life(), dict[str, SharedReference]()
    for _, episode in zip(life.says(turns), said, strict=False):
        for key, value in life.current.items():
            old, when = found.get(key), episode.timestamp
            if old is None:
                made = SharedReference(key, value, 1, episode.id, when, when, "person")
            else:
                made = replace(old, value=value, version=old.version + 1, source=episode.id,
                               updated_at=when)  # fmt: skip
            if old is None or old.value != value:
                found[key] = replace(made, entry=_number(episode) + 1)
    return list(found.values())


def _working_sets(said: Sequence[EpisodeEntry]) -> list[WorkingSet]:
    """Return a working set for each week, of what the person said in it."""
    size = -(-len(said) // _WEEKS)
    return [
        _working_set(f"p{at // size + 1}", said[at : at + size]) for at in range(0, len(said), size)
    ]


def _working_set(problem: str, said: Sequence[EpisodeEntry]) -> WorkingSet:
    texts = [str(one.content["content"]) for one in said]
    newest = list(dict.fromkeys(reversed(texts)))
    told = [(text, fact) for text in newest if (fact := _stated(text)) is not None]
    made: datetime = said[0].timestamp
    return WorkingSet(
        problem,
        _LANE,
        made,
        said[-1].timestamp + timedelta(hours=2),
        {
            "must": [fact for text, fact in told if "eadline" in text][:_MOST],
            "must_not": [text for text in newest if ", not " in text][:_MOST],
        },
        [{"a": fact, "confidence": 0.8} for _, fact in told[:_MOST]],
        [text for text in newest if text.endswith("?")][:_MOST],
        {"notes": "\n".join(fact for _, fact in told[_MOST : 2 * _MOST])},
        [{"d": fact, "why": text} for text, fact in told[2 * _MOST : 3 * _MOST]],
    )


def _stated(text: str) -> str | None:
    """Return what a message states of an attribute, as a fact."""
    for one in ATTRIBUTES:
        for value in one.values:
            if any(form.format(v=value) == text for form in one.said):
                return one.fact.format(v=value)
    return None


def _problems(sets: Sequence[WorkingSet], told: Sequence[EpisodeEntry]) -> list[Problem]:
    """Return a problem for each week, its working set recorded by itself."""
    found = []
    said = [one for one in told if one.entry_type == "turn"]
    ends = accumulate([-(-len(said) // _WEEKS)] * len(sets))
    for number, (one, end) in enumerate(zip(sets, ends, strict=True), 1):
        ids = tuple(map(_number, said[:end][-60:]))
        summary = "; ".join(str(decision["d"]) for decision in one.local_decisions[:4])
        last = min(one.expires_at - timedelta(hours=2), said[-1].timestamp)
        state = "active" if number == len(sets) else "paused"
        found.append(Problem(one.problem_id, f"week {number}", state, _LANE, one.created_at, last,
                             None, 5, summary, ids, (len(ids), 900)))  # fmt: skip
    return found


def _dated(record: Any) -> Any:
    """Return a record with times to the millisecond, as real ones are: the month's clock stands still."""
    salt = record.id if isinstance(record, EpisodeEntry) else ""
    moments = {
        name: held + timedelta(milliseconds=random.Random(f"{held}{salt}").randrange(60_000))
        for name in record.__slots__
        if isinstance(held := getattr(record, name), datetime)
    }
    return replace(record, **moments)


def _number(episode: EpisodeEntry) -> int:
    return int(episode.id.rpartition("#")[2])
