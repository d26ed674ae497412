"""What every tape store promises of its search.

A search may also give what stands right beside what fits: short turns are about each other. So most
messages here stand apart, each in a chapter of its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from tape_talk import TAPE, ids, says, talk

from bot.errors import InvalidSearch, TapeNotFound, VersionConflict
from bot.tape.entries import (
    TapeEntry,
    anchor,
    event,
    message,
    system,
    tool_call,
    tool_result,
)
from bot.tape.search import LONGEST_QUERY, MOST_HITS, MOST_NEIGHBOURS, Hit, SearchQuery
from bot.tape.store import TapeStore

START = datetime(2026, 2, 10, 10, 0, tzinfo=UTC)
DAY = timedelta(days=1)
MESSAGES = frozenset({"message"})


def chapters(entries: Iterable[TapeEntry]) -> list[TapeEntry]:
    """Return entries with a boundary behind each."""
    return [one for entry in entries for one in (entry, anchor("chapter"))]


async def apart(store: TapeStore, *said: str | TapeEntry, tape: str = TAPE) -> list[TapeEntry]:
    """Append entries, or texts as messages, that do not stand beside each other; return them."""
    await store.create_tape(tape)
    entries = [says(one) if isinstance(one, str) else one for one in said]
    return (await store.append_many(tape, chapters(entries)))[::2]


async def ask(store: TapeStore, text: str = "", **filters: Any) -> list[Hit]:
    return await store.search(SearchQuery(text, **filters))


def said(hits: list[Hit]) -> list[str]:
    return [hit.entry.payload["content"] for hit in hits]


async def found(store: TapeStore, text: str = "", **filters: Any) -> list[str]:
    """Return the texts of messages that are found, best first."""
    return said(await ask(store, text, **{"kinds": MESSAGES, **filters}))


def invented(count: int, seed: int = 1) -> list[str]:
    """Return words of no language that nobody could take for each other."""
    rng = random.Random(seed)
    return ["".join(rng.choices("bdfgklmnprtvz", k=10)) for _ in range(count)]


# What is known, and when.


async def test_an_empty_store_finds_nothing(store):
    assert await ask(store, "tea") == []
    assert await ask(store) == []


async def test_what_was_appended_is_found_at_once_each_time(store):
    await store.create_tape(TAPE)
    for word in invented(50):
        [entry] = await apart(store, f"the word is {word}, remember it")
        [hit] = await ask(store, word)
        assert (hit.tape, hit.entry) == (TAPE, entry)


async def test_each_of_many_writers_finds_at_once_what_it_wrote(backend):
    store = backend.store
    words = invented(60)

    async def write(number: int) -> None:
        for step in range(5):
            word = words[number * 5 + step]
            [entry] = await apart(store, word, tape=f"telegram:{number % 3}")
            assert entry.id in [hit.entry.id for hit in await ask(store, word)]

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(write, number)
        for _ in range(3):
            tasks.start_soon(archive_once_made, store, "telegram:0")
    async for reader in backend.readers():
        for word in words:
            assert await found(reader, word) == [word]


async def archive_once_made(store: TapeStore, tape: str) -> None:
    await store.create_tape(tape)
    await store.archive(tape)


async def test_what_is_found_is_the_same_with_background_work_and_without(store):
    words = invented(30)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        for word in words:
            await apart(store, word)
            assert await found(store, word) == [word]
        tasks.cancel_scope.cancel()
    for word in words:
        assert await found(store, word) == [word]


async def test_what_was_said_before_is_found_after_reopening(backend):
    await apart(backend.store, "green tea", "black coffee")
    store = await backend.reopen()
    assert await found(store, "tea") == ["green tea"]
    await apart(store, "more tea")
    store = await backend.reopen()
    assert await found(store, "tea") == ["more tea", "green tea"]


async def test_a_hit_is_the_entry_as_it_is_on_its_tape(backend):
    awkward = {"value": [2**63, -0.0, [], {}, "half \ud83d"]}
    await apart(backend.store, says("green tea", note=awkward))
    async for store in backend.readers():
        [hit] = await ask(store, "tea")
        assert repr(hit.entry) == repr((await store.read(TAPE, hit.entry.id))[0])


async def test_what_is_found_cannot_be_changed_by_whoever_found_it(store):
    await apart(store, says("tea", note={"list": [1]}))
    (await ask(store, "tea"))[0].entry.meta["note"]["list"].append(2)
    assert (await ask(store, "tea"))[0].entry.meta["note"] == {"list": [1]}


async def test_hits_in_segments_are_found(backend):
    await apart(backend.store, "first tea")
    await backend.store.archive(TAPE)
    await apart(backend.store, "second tea")
    await backend.store.archive(TAPE)
    await apart(backend.store, "third tea")
    async for store in backend.readers():
        assert await found(store, "tea") == ["third tea", "second tea", "first tea"]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("asked", [False, True], ids=["never asked", "asked before"])
async def test_what_a_reset_dropped_is_not_found(backend, replace, asked):
    store = backend.store
    await apart(store, "sealed tea")
    await store.archive(TAPE)
    await apart(store, "dropped tea", "dropped cake")
    if asked:
        assert len(await found(store, "tea")) == 2
    if replace:
        await store.create_tape(TAPE, replace_if_exists=True)
    else:
        await store.reset(TAPE, [says("carried tea")])
    await apart(store, "new tea")
    async for reader in backend.readers():
        carried = [] if replace else ["carried tea"]
        assert await found(reader, "tea") == ["new tea", *carried]
        assert await found(reader, "cake") == []
        assert not {"dropped tea", "sealed tea"}.intersection(await found(reader))


async def test_a_fork_is_found_in_like_any_tape(backend):
    await apart(backend.store, "green tea", "black tea")
    await backend.store.fork(TAPE, "child", from_entry=4)
    await apart(backend.store, "the parent's tea")
    await apart(backend.store, "the child's tea", tape="child")
    async for store in backend.readers():
        assert sorted(await found(store, "tea", tapes=("child",))) == sorted(
            ["the child's tea", "black tea"]
        )
        assert sorted(await found(store, "tea", tapes=(TAPE,))) == sorted(
            ["the parent's tea", "black tea", "green tea"]
        )
        assert len(await found(store, "tea")) == 5


async def test_a_batch_that_was_refused_is_not_found(store):
    await apart(store, "tea")
    with pytest.raises(VersionConflict):
        await store.append_many(TAPE, [says("coffee")], expect=1)
    assert await found(store, "coffee") == []


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 6, 9, 13])
async def test_searches_cancelled_at_any_step_cost_no_later_one_anything(backend, steps):
    store = backend.store
    words = invented(20)
    for word in words:
        await apart(store, word)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, store, word)
            tasks.start_soon(ask, store)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
    async for reader in backend.readers():
        for word in words:
            assert await found(reader, word) == [word]


# Any script.


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("你好", "你好"),
        ("我喜欢喝咖啡", "咖啡"),
        ("我喜欢喝咖啡", "喜欢咖啡"),
        ("我的猫很可爱", "猫"),
        ("用iPhone手机拍的", "iphone"),
        ("用iPhone手机拍的", "手机"),
        ("Viele Grüße aus Köln", "grüße"),
        ("Viele Grüße aus Köln", "GRÜSSE"),
        ("Viele Grüße aus Köln", "gruße"),
        ("Viele Grüße aus Köln", "grusse"),
        ("Viele Grüße aus Köln", "Gru\u0308ße"),
        ("Viele Gru\u0308ße aus Ko\u0308ln", "Köln"),
        ("naïve café", "cafe"),
        ("a cafe", "Café"),
        ("Это моя книга", "книги"),
        ("Две книги", "КНИГА"),
        ("Ещё чаю", "еще"),
        ("اشتريت الكتاب", "كتاب"),
        ("هذا كتاب", "الكتاب"),
        ("هذا كِتَاب", "كتاب"),
        ("יש לי שאלה על התה", "שאלה"),
        ("שָׁלוֹם לכם", "שלום"),
        ("ฉันชอบกาแฟ", "กาแฟ"),
        ("コーヒーが大好きです", "コーヒー"),
        ("コーヒーが大好きです", "大好き"),
        ("東京に行きました", "東京"),
        ("ｶﾀｶﾅ ＡＢＣ", "カタカナ"),
        ("ｶﾀｶﾅ ＡＢＣ", "abc"),
        ("커피를 좋아해요", "커피"),
        ("मुझे चाय पसंद है", "चाय"),
        ("Ο Οδυσσεύς γύρισε", "ΟΔΥΣΣΕΥΣ"),
        ("שלום 你好 hello", "hello"),
        ("She was running home", "run"),
        ("A run of luck", "running"),
        ("two cities", "city"),
        ("Ada's bicycle", "Ada bicycles"),
        ("pizza 🍕 tonight", "🍕"),
        ("the snake_case_name", "case"),
        ("see https://example.org/recipes", "recipes"),
        ("mail ada@example.org", "ada"),
        ("room 42b", "42b"),
        ("order 1234567890123456789012345678901234567890123", "order"),
    ],
)
async def test_what_was_said_is_found_in_any_script(backend, text, query):
    others = ("something else entirely", "其他的事情", "что-то другое", "شيء آخر", "別の話")
    await apart(backend.store, *others, text)
    async for store in backend.readers():
        assert await found(store, query) == [text]


async def test_a_word_that_nobody_said_is_not_found(store):
    await apart(store, "green tea", "我喜欢喝茶", "две книги")
    for nobody_said in ("submarine", "潜水艇", "подлодка", "🚢", "xylophone"):
        assert await found(store, nobody_said) == []


# Phrases.


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I like green tea a lot", '"green tea"'),
        ("I like green tea a lot", "“green tea”"),
        ("to be or not to be", '"to be or not to be"'),
        ("first line\nsecond line\n\nthird line", '"line second line third"'),
        ("first line\nsecond line\n\nthird line", '"first line\nsecond line"'),
        ("well, it's (almost) done: finally!", '"almost done: finally"'),
        ("well, it's (almost) done: finally!", '"well it\'s almost done"'),
        ("he said “no” twice", '"said no twice"'),
        ("我喜欢喝咖啡", '"喝咖啡"'),
        ("我用iPhone手机", '"用iPhone手机"'),
        ("コーヒーが大好きです", "「大好き」"),
        ("Viele liebe Grüße", '"liebe grüsse"'),
        ("version 3.11 is out", '"version 3.11"'),
    ],
)
async def test_a_phrase_is_found_whatever_lines_and_punctuation_it_holds(backend, text, query):
    await apart(backend.store, "tea is green", "啡咖喝", "to not be or be to", text)
    async for store in backend.readers():
        assert await found(store, query) == [text]


async def test_a_phrase_must_be_there_as_it_is(store):
    await apart(store, "green tea", "tea, green", "green and black tea", "green", "tea")
    assert await found(store, '"green tea"') == ["green tea"]
    assert await found(store, '"tea green"') == ["tea, green"]
    assert await found(store, '"no such phrase"') == []
    assert await found(store, 'tea "no such phrase"') == []


async def test_what_stands_beside_a_phrase_is_not_the_phrase(store):
    await talk(store, "is there more?", "green tea", "tea is green", "and cake")
    assert await found(store, '"green tea"') == ["green tea"]


async def test_all_phrases_must_be_there(store):
    await apart(store, "green tea and black coffee", "green tea", "black coffee")
    assert await found(store, '"green tea" "black coffee"') == ["green tea and black coffee"]


async def test_a_phrase_does_not_reach_from_one_message_into_the_next(store):
    await talk(store, "green", "tea")
    assert await found(store, '"green tea"') == []


async def test_a_phrase_is_found_wherever_it_stands_in_a_long_text(store):
    words = invented(1500)
    await apart(store, " ".join(words))
    missed = [
        place
        for place in range(len(words) - 2)
        if place % 100 in (0, 98, 99)
        and not await found(store, f'"{words[place]} {words[place + 1]}"')
    ]
    assert missed == []


async def test_a_phrase_may_begin_and_end_where_the_script_changes(store):
    await apart(store, "我常用iPhone拍照片")
    for phrase in ('"用iPhone"', '"iPhone拍"', '"用iPhone拍"'):
        assert await found(store, phrase) == ["我常用iPhone拍照片"]


async def test_words_anywhere_in_a_long_text_are_found_and_the_entry_is_one_hit(store):
    words = invented(3000)
    [entry] = await apart(store, " ".join(words))
    for word in (words[0], words[1499], words[2999]):
        assert [hit.entry.id for hit in await ask(store, word)] == [entry.id]
    assert len(await ask(store, f"{words[0]} {words[1499]} {words[2999]}")) == 1


# Signs.


SIGNS = [
    '"',
    '""',
    '"""',
    "“”",
    "„“",
    "«»",
    "?!…",
    "()",
    "*",
    "-",
    "^",
    ":",
    "🍕",
    "👩‍👩‍👧",
    "'",
    "_",
    "\\",
    "%",
    "\x00",
    "\ud83d",
    '"\ud83d"',
    "\u200d",
    "\u0301",
    "؟",
    "。",
    "½",
    "²",
    "٣",
]


async def test_a_query_of_signs_alone_is_no_error(store):
    await apart(store, "green tea", "你好")
    for query in SIGNS:
        assert isinstance(await ask(store, query), list), ascii(query)
    assert await found(store, "tea") == ["green tea"]


SYNTAX = [
    "tea AND",
    "AND tea",
    "OR tea OR",
    "NOT tea",
    "tea NOT green",
    "NEAR(tea green, 2)",
    "NEAR/3 tea",
    "tea*",
    "tea* OR coffee*",
    "^tea",
    "tea:green",
    "terms:tea",
    "{terms words}: tea",
    "-tea",
    "+tea + green",
    "(tea",
    "tea)",
    "((((tea",
    'tea"',
    '"tea',
    '"tea" "',
    "'tea",
    "tea; DROP TABLE docs; --",
    "tea%",
    "tea\\",
    "tea\x00",
    "\ud83d tea",
    "tea\n\r\t",
    "tea, green & co.",
    "<tea>",
    "tea~1",
    "[tea]",
]


async def test_what_is_syntax_elsewhere_is_plain_text(store):
    await apart(store, "green tea", "nothing of the kind")
    for query in SYNTAX:
        assert "green tea" in await found(store, query), ascii(query)
    assert await found(store, "tea") == ["green tea"]


async def test_operator_words_are_found_as_words(store):
    words = ["AND", "OR", "NOT", "NEAR", "MATCH", "rank", "rowid", "null"]
    await apart(store, "green tea", *(f"he wrote {word} on it" for word in words))
    for word in words:
        assert await found(store, word) == [f"he wrote {word} on it"]


async def test_texts_of_signs_and_halves_of_signs_keep_nothing_else_from_being_found(backend):
    odd = ["", " ", '"', "\x00", "\ud83d", "\ud83d\ude00", "tea \ud83d cup", "pot\x00lid", "\u0301"]
    await apart(backend.store, *odd, "green tea")
    async for store in backend.readers():
        assert sorted(await found(store, "tea")) == sorted(["tea \ud83d cup", "green tea"])
        assert await found(store, "lid") == ["pot\x00lid"]
        assert len(await found(store, limit=50)) == 10


# Typing errors.


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("restarant", "a nice restaurant"),
        ("restuarant", "a nice restaurant"),
        ("resstaurant", "a nice restaurant"),
        ("restaurent", "a nice restaurant"),
        ("bicyle", "the red bicycle"),
        ("tehnology", "new technology"),
        ("сабака", "большая собака"),
        ("grüsze", "viele Grüße"),
    ],
)
async def test_a_word_that_was_mistyped_is_found(backend, query, text):
    await apart(backend.store, "the bus station", "две книги", text)
    async for store in backend.readers():
        assert await found(store, query) == [text]


async def test_a_mistyped_word_is_found_beside_one_that_is_right(store):
    await apart(store, "a nice restaurant in Oslo", "the station in Bergen")
    assert (await found(store, "restarant Oslo"))[0] == "a nice restaurant in Oslo"


@pytest.mark.parametrize(("query", "text"), [("cta", "the cat"), ("dgo", "a dog"), ("te", "tea")])
async def test_short_words_are_not_taken_for_each_other(store, query, text):
    await apart(store, text)
    assert await found(store, query) == []


async def test_a_word_as_it_was_typed_comes_before_one_that_is_like_it(store):
    await apart(store, "the planet", "the planer", "the planets")
    assert (await found(store, "planer"))[0] == "the planer"


# Filters.


@pytest.fixture
async def mixed(store: TapeStore) -> list[TapeEntry]:
    """One tape with an entry of each kind that holds the word tea; ids 2 to 13."""
    entries = [
        says("tea, says Ada", sender={"id": "7", "name": "Ada"}, sent=moment(0)),
        message("assistant", "tea, says the assistant", sent=moment(1)),
        says("tea, says Bo", sender={"id": "8", "name": "Bo Ås"}, sent=moment(2)),
        tool_call("tea", [{"id": "c1", "name": "shop.buy", "arguments": '{"what": "tea"}'}]),
        tool_result("c1", "shop.buy", "bought tea"),
        event("memory.history", {"content": "they spoke of tea"}),
        anchor("session/new", {"summary": "all about tea"}),
        system("you sell tea"),
    ]
    await store.create_tape(TAPE)
    return await store.append_many(
        TAPE, [entry.with_meta(ts=moment(n)) for n, entry in enumerate(entries)]
    )


def moment(days: int) -> str:
    return (START + days * DAY).isoformat()


async def places(store: TapeStore, text: str = "tea", **filters: Any) -> set[int]:
    return {hit.entry.id for hit in await ask(store, text, **filters)}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("message", {2, 3, 4}),
        ("tool_call", {5}),
        ("tool_result", {6}),
        ("event", {7}),
        ("anchor", {8}),
        ("system", {9}),
    ],
)
async def test_what_is_found_can_be_of_one_kind(store, mixed, kind, expected):
    assert await places(store, kinds=frozenset({kind})) == expected


async def test_kinds_can_be_put_together(store, mixed):
    assert await places(store, kinds=frozenset({"tool_call", "anchor"})) == {5, 8}
    assert await places(store, kinds=frozenset()) == set()


async def test_system_prompts_are_found_only_where_they_are_asked_for(store, mixed):
    assert await places(store) == {2, 3, 4, 5, 6, 7, 8}
    assert await places(store, "sell") == set()
    assert 9 not in {hit.entry.id for hit in await ask(store, limit=100)}
    assert await places(store, "sell", kinds=frozenset({"system"})) == {9}


@pytest.mark.parametrize(
    ("senders", "expected"),
    [
        ({"7"}, {2}),
        ({"Ada"}, {2}),
        ({"ADA"}, {2}),
        ({"bo ås"}, {4}),
        ({"BO ÅS"}, {4}),
        ({"assistant"}, {3}),
        ({"Ada", "assistant"}, {2, 3}),
        ({"7", "ada"}, {2}),
        ({"Ad"}, set()),
        ({"nobody"}, set()),
        ({""}, set()),
        ({"%"}, set()),
        ({"half \ud83d"}, set()),
        (set(), set()),
    ],
    ids=lambda value: ascii(sorted(value)),
)
async def test_what_is_found_can_be_of_some_senders(store, mixed, senders, expected):
    assert await places(store, kinds=MESSAGES, senders=frozenset(senders)) == expected


async def test_a_sender_is_known_by_the_id_whatever_name_is_shown(store):
    names = ["Ada", "Ada L.", "ada \ud83d", ""]
    await apart(store, *(says("tea", sender={"id": "7", "name": name}) for name in names))
    await apart(store, says("tea", sender={"id": "8", "name": "Ada"}))
    assert await places(store, kinds=MESSAGES, senders=frozenset({"7"})) == {2, 4, 6, 8}
    assert await places(store, kinds=MESSAGES, senders=frozenset({"Ada"})) == {2, 10}


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        (0, None, {2, 3, 4}),
        (1, None, {3, 4}),
        (2, None, {4}),
        (3, None, set()),
        (None, 0, set()),
        (None, 1, {2}),
        (None, 3, {2, 3, 4}),
        (1, 2, {3}),
        (2, 1, set()),
    ],
)
async def test_what_is_found_can_be_of_some_time(store, mixed, since, until, expected):
    """From a moment on, and up to right before another."""
    found = await places(
        store,
        kinds=MESSAGES,
        since=None if since is None else START + since * DAY,
        until=None if until is None else START + until * DAY,
    )
    assert found == expected


async def test_a_time_is_the_same_in_any_zone(store, mixed):
    tokyo = timezone(timedelta(hours=9))
    since, until = (START + DAY).astimezone(tokyo), (START + 2 * DAY).astimezone(tokyo)
    assert await places(store, kinds=MESSAGES, since=since, until=until) == {3}


async def test_when_a_thing_was_said_counts_before_when_it_was_written_down(store):
    late = says("tea", sent=moment(0)).with_meta(ts=moment(5))
    plain = says("tea").with_meta(ts=moment(0))
    broken = says("tea", sent="yesterday, I think").with_meta(ts=moment(0))
    await apart(store, late, plain, broken, says("tea").with_meta(ts=moment(5)))
    assert await places(store, kinds=MESSAGES, until=START + DAY) == {2, 4, 6}
    assert await places(store, kinds=MESSAGES, since=START + DAY) == {8}


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (3, None, {3, 4, 5, 6, 7, 8}),
        (None, 3, {2, 3}),
        (3, 5, {3, 4, 5}),
        (5, 5, {5}),
        (5, 4, set()),
        (9, None, set()),
        (-5, 2, {2}),
        (10**12, None, set()),
        (None, 0, set()),
        (None, 10**12, {2, 3, 4, 5, 6, 7, 8}),
        (2**70, None, set()),
        (-(2**70), 2**70, {2, 3, 4, 5, 6, 7, 8}),
    ],
)
async def test_what_is_found_can_be_of_some_ids(store, mixed, first, last, expected):
    assert await places(store, first=first, last=last) == expected


async def test_filters_hold_together(store, mixed):
    both = {"kinds": MESSAGES, "first": 3}
    assert await places(store, **both) == {3, 4}
    assert await places(store, **both, since=START + 2 * DAY) == {4}
    assert await places(store, **both, senders=frozenset({"ada", "8"})) == {4}
    assert await places(store, **both, senders=frozenset({"8"}), until=START + 2 * DAY) == set()
    assert await places(store, **both, tapes=("other",)) == set()
    assert await places(store, "coffee", **both) == set()
    assert await places(store, "", **both) == {3, 4}


async def test_only_the_tapes_that_are_asked_for_are_searched(backend):
    names = [TAPE, "telegram:4", "telegram:42:1", "TELEGRAM:42", "telegram:4_", "telegram:%", ""]
    for name in names:
        await apart(backend.store, f"tea on {name}", tape=name)
    async for store in backend.readers():
        for name in names:
            assert await found(store, "tea", tapes=(name,)) == [f"tea on {name}"]
            assert await found(store, tapes=(name,)) == [f"tea on {name}"]
        assert len(await found(store, "tea")) == len(names)
        some = await ask(store, "tea", tapes=("", TAPE, "nobody", TAPE), kinds=MESSAGES)
        assert sorted(hit.tape for hit in some) == ["", TAPE]


@pytest.mark.parametrize("text", ["", "tea", '"green tea"'])
async def test_tapes_that_do_not_exist_hold_nothing(store, text):
    await apart(store, "green tea")
    assert await ask(store, text, tapes=()) == []
    assert await ask(store, text, tapes=("nobody", "telegram:4")) == []
    assert await store.list_tapes() == [TAPE]


async def test_many_tapes_are_searched_as_exactly_as_one(store):
    names = [f"telegram:{number}" for number in range(45)]
    for name in names:
        await apart(store, f"tea on {name}", tape=name)
    for asked in (names[:1], names[3:19], names[3:20], names[::2], names):
        hits = await ask(store, "tea", tapes=tuple(asked), kinds=MESSAGES, limit=100)
        assert sorted(hit.tape for hit in hits) == sorted(asked)
        hits = await ask(store, tapes=tuple(asked), kinds=MESSAGES, limit=100, first=2, last=2)
        assert sorted(hit.tape for hit in hits) == sorted(asked)


async def test_a_search_of_one_tape_never_gives_anything_of_another(store):
    """Over random talk on tapes that share their words, people, anchors and times."""
    rng = random.Random(3)
    words = invented(6)
    tapes = [f"telegram:{number}" for number in range(4)]
    holds: dict[tuple[str, str], set[int]] = {}
    for _ in range(60):
        tape, chosen = rng.choice(tapes), rng.sample(words, 2)
        sender = {"id": rng.choice("78"), "name": rng.choice(["Ada", "Bo"])}
        [entry] = await apart(store, says(" ".join(chosen), sender=sender), tape=tape)
        for word in chosen:
            holds.setdefault((tape, word), set()).add(entry.id)
    for tape in tapes:
        for word in words:
            for text in (word, f'"{word}"'):
                hits = await ask(
                    store, text, tapes=(tape,), kinds=MESSAGES, limit=200, neighbours=3
                )
                assert {hit.tape for hit in hits} <= {tape}
                assert {hit.entry.id for hit in hits} == holds.get((tape, word), set())
                for hit in hits:
                    around = (hit.entry, *hit.before, *hit.after)
                    there = await store.read(tape)
                    assert all(there[one.id - 1] == one for one in around)


# Anchors.


@pytest.fixture
async def marked(store: TapeStore) -> None:
    """Messages at 2, 4, 6, 8, 10; the last bookmark ``here`` points at 6, ``cut`` stands at 13."""
    await apart(store, *(f"tea {word}" for word in ("one", "two", "three", "four", "five")))
    await store.create_anchor(TAPE, "here", 8)
    await store.create_anchor(TAPE, "here", 6)
    await apart(store, "tea six", anchor("cut"), "tea seven")


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"after_anchor": "here"}, {8, 10, 14, 18}),
        ({"before_anchor": "here"}, {2, 4}),
        ({"after_anchor": "cut"}, {18}),
        ({"before_anchor": "cut"}, {2, 4, 6, 8, 10, 14}),
        ({"after_anchor": "here", "before_anchor": "cut"}, {8, 10, 14}),
        ({"after_anchor": "cut", "before_anchor": "here"}, set()),
        ({"after_anchor": "here", "first": 9}, {10, 14, 18}),
        ({"after_anchor": "here", "first": 3}, {8, 10, 14, 18}),
        ({"before_anchor": "cut", "last": 9}, {2, 4, 6, 8}),
        ({"before_anchor": "here", "last": 9}, {2, 4}),
    ],
    ids=str,
)
@pytest.mark.parametrize("text", ["tea", ""])
async def test_what_is_found_can_be_after_or_before_an_anchor(
    store, marked, filters, expected, text
):
    """The last anchor of the name counts, and the entry that it points at is neither."""
    assert await places(store, text, tapes=(TAPE,), kinds=MESSAGES, limit=50, **filters) == expected


@pytest.mark.parametrize("end", ["after_anchor", "before_anchor"])
async def test_an_anchor_that_a_search_names_must_exist(store, marked, end):
    await talk(store, "tea", tape="other")
    for tape in ("other", "nobody"):
        with pytest.raises(TapeNotFound):
            await ask(store, "tea", tapes=(tape,), **{end: "here"})
    with pytest.raises(TapeNotFound, match="nowhere"):
        await ask(store, "tea", tapes=(TAPE,), **{end: "nowhere"})


async def test_an_anchor_made_right_before_a_search_counts(store):
    await store.create_tape(TAPE)
    for _ in range(20):
        await apart(store, "tea")
        await store.create_anchor(TAPE, "here")
        [entry] = await apart(store, "tea")
        assert await places(store, tapes=(TAPE,), kinds=MESSAGES, after_anchor="here") == {entry.id}


# Order and number.


async def test_without_words_the_newest_come_first(store):
    entries = [says(str(n)).with_meta(ts=moment(n)) for n in range(12)]
    await apart(store, *entries)
    assert await found(store) == [str(n) for n in range(11, 1, -1)]
    assert await found(store, "  \n", limit=3) == ["11", "10", "9"]
    assert await found(store, limit=100) == [str(n) for n in range(11, -1, -1)]


async def test_without_words_the_newest_of_all_tapes_come_first(store):
    for number in range(12):
        await apart(store, says(str(number)).with_meta(ts=moment(number)), tape=f"t:{number % 3}")
    assert await found(store, limit=7) == ["11", "10", "9", "8", "7", "6", "5"]


async def test_without_words_long_entries_count_once_towards_the_limit(store):
    words = invented(1500)
    await apart(store, *(tool_result(f"c{n}", "web.read", " ".join(words)) for n in range(4)))
    hits = await ask(store, kinds=frozenset({"tool_result"}), limit=3)
    assert [hit.entry.id for hit in hits] == [8, 6, 4]


async def test_of_what_fits_equally_the_newer_comes_first(backend):
    for number in range(6):
        await apart(backend.store, says("green tea").with_meta(ts=moment(number)))
    async for store in backend.readers():
        hits = await ask(store, "tea", kinds=MESSAGES)
        assert [hit.entry.id for hit in hits] == [12, 10, 8, 6, 4, 2]


async def test_of_what_was_said_in_one_moment_the_later_entry_comes_first(store):
    await apart(store, *(says("green tea").with_meta(ts=moment(0)) for _ in range(6)))
    for text in ("tea", ""):
        hits = await ask(store, text, kinds=MESSAGES)
        assert [hit.entry.id for hit in hits] == [12, 10, 8, 6, 4, 2]


async def test_an_entry_with_more_of_the_words_comes_first(store):
    await apart(
        *(store, "green tea with lemon today", "green apples and pears today"),
        *("a lemon on its own today", "tea for two, as always"),
    )
    assert (await found(store, "green tea lemon"))[0] == "green tea with lemon today"
    assert (await found(store, "tea lemon"))[0] == "green tea with lemon today"


async def test_a_rare_word_counts_more_than_a_common_one(store):
    await apart(store, "the samovar is hot", *(f"cup of tea {word}" for word in invented(20)))
    assert (await found(store, "tea samovar"))[0] == "the samovar is hot"


async def test_no_hit_fits_clearly_better_than_one_before_it(store):
    """Scores that are nearly the same may stand either way, the newer first."""
    rng = random.Random(5)
    words = invented(8)
    await apart(store, *(" ".join(rng.choices(words, k=rng.randint(1, 12))) for _ in range(60)))
    hits = await ask(store, " ".join(words[:3]), limit=60)
    scores = [hit.score for hit in hits]
    assert len(scores) > 10
    assert all(later <= 1.05 * hit for hit, later in pairwise(scores))
    assert scores[0] > 1.5 * scores[-1]


@pytest.mark.parametrize("limit", [1, 2, 10, 29, 30, 31, MOST_HITS])
async def test_there_are_at_most_as_many_hits_as_were_asked_for(store, limit):
    await apart(store, *["tea"] * 30)
    for text in ("tea", "", '"tea"'):
        hits = await ask(store, text, kinds=MESSAGES, limit=limit)
        assert len(hits) == min(limit, 30)
        assert len({hit.entry.id for hit in hits}) == len(hits)


async def test_filters_come_before_the_limit(store):
    """What the filters leave out takes nobody's place."""
    await apart(store, says("green tea", sender={"id": "7"}))
    await apart(store, *(says("tea tea", sender={"id": "8"}) for _ in range(300)))
    assert await places(store, kinds=MESSAGES, senders=frozenset({"7"}), limit=1) == {2}
    assert await places(store, kinds=MESSAGES, last=2, limit=1) == {2}
    assert await places(store, "", kinds=MESSAGES, senders=frozenset({"7"}), limit=1) == {2}


async def test_an_entry_that_holds_the_word_is_among_the_hits_wherever_it_stands(store):
    words = invented(20)
    await talk(store, *words)
    for word in words:
        assert (await found(store, word))[0] == word


async def test_what_stands_beside_the_word_says_that_it_has_not_got_it(store):
    words = invented(20)
    await talk(store, *words)
    for word in words:
        direct = [hit for hit in await ask(store, word, limit=20) if hit.direct]
        assert said(direct) == [word]
    assert all(hit.direct for hit in await ask(store, kinds=MESSAGES))


# Neighbours.


async def test_a_hit_comes_with_the_messages_around_it_in_their_order(backend):
    await talk(backend.store, "a", "b", "c", "xylophone", "d", "e")
    async for store in backend.readers():
        for count, before, after in (
            *((0, "", ""), (1, "c", "d"), (2, "bc", "de")),
            *((3, "abc", "de"), (MOST_NEIGHBOURS, "abc", "de")),
        ):
            hit = (await ask(store, "xylophone", neighbours=count))[0]
            assert said([hit]) == ["xylophone"]
            assert [one.payload["content"] for one in hit.before] == list(before)
            assert [one.payload["content"] for one in hit.after] == list(after)


async def test_neighbours_are_messages_and_nothing_else(store):
    await store.create_tape(TAPE)
    await store.append_many(
        TAPE,
        [
            says("a"),
            tool_call("x", [{"id": "c", "name": "n", "arguments": ""}]),
            tool_result("c", "n", "x"),
            says("xylophone"),
            event("memory.history", {"content": "x"}),
            system("x"),
            anchor("x"),
            message("assistant", "b"),
        ],
    )
    await store.archive(TAPE)
    await talk(store, "c")
    hit = (await ask(store, "xylophone", neighbours=3))[0]
    assert [one.payload["content"] for one in hit.before] == ["a"]
    assert [one.payload["content"] for one in hit.after] == ["b", "c"]


async def test_a_hit_that_is_no_message_comes_with_the_messages_around_it(store):
    await talk(store, "a", "b")
    await store.append(TAPE, tool_result("c", "n", "xylophone"))
    await talk(store, "c", "d")
    [hit] = await ask(store, "xylophone", kinds=frozenset({"tool_result"}), neighbours=1)
    assert [one.payload["content"] for one in (*hit.before, *hit.after)] == ["b", "c"]


async def test_neighbours_are_of_the_same_tape_and_still_on_it(backend):
    await talk(backend.store, "sealed")
    await backend.store.archive(TAPE)
    await talk(backend.store, "dropped")
    await backend.store.reset(TAPE)
    await talk(backend.store, "before", tape="telegram:41")
    await talk(backend.store, "xylophone")
    await talk(backend.store, "after", tape="telegram:43")
    async for store in backend.readers():
        [hit] = await ask(store, "xylophone", tapes=(TAPE,), kinds=MESSAGES, neighbours=5, limit=1)
        assert (hit.before, hit.after) == ((), ())


async def test_evidence_names_entries_that_are_there(backend):
    for tape in (TAPE, "other"):
        await talk(backend.store, "a", "tea", "b", tape=tape)
        await backend.store.archive(tape)
        await talk(backend.store, "tea", tape=tape)
    async for store in backend.readers():
        hits = await ask(store, "tea", neighbours=2)
        assert {hit.tape for hit in hits} == {TAPE, "other"}
        for hit in hits:
            assert hit.evidence[0] == (hit.tape, hit.entry.id)
            around = (hit.entry, *hit.before, *hit.after)
            for (tape, entry_id), entry in zip(hit.evidence, around, strict=True):
                assert await store.read(tape, entry_id, entry_id) == [entry]


# What is never found.


@pytest.mark.parametrize("name", ["memory.recall", "tape.search", "memory_recall", "tape_search"])
async def test_what_was_recalled_is_not_found_once_more(store, name):
    await apart(store, tool_result("c", name, "xylophone"), tool_result("c", "web.read", "tea"))
    assert await ask(store, "xylophone") == []
    assert await places(store, "tea", kinds=frozenset({"tool_result"})) == {4}
    assert await places(store, "", kinds=frozenset({"tool_result"})) == {4}


async def test_bookkeeping_is_not_found(store):
    await store.create_tape(TAPE, "xylophone")
    notes = ("turn.start", "turn.end", "loop.step", "delivery", "command", "tape.repair")
    await store.append_many(TAPE, [event(name, {"text": "xylophone"}) for name in notes])
    await store.append(TAPE, anchor("memory/open", {"text": "xylophone"}))
    await store.archive(TAPE)
    assert await ask(store, "xylophone") == []


async def test_entries_of_any_shape_keep_nothing_else_from_being_found(backend):
    store = backend.store
    await store.create_tape(TAPE)
    odd: list[Any] = [None, 5, [], {}, {"a": {"b": ["tea"]}}, "half \ud83d", 2**70, True]
    for value in odd:
        for kind in ("message", "tool_call", "tool_result", "anchor", "event", "system"):
            entry = TapeEntry(0, kind, {})  # type: ignore[arg-type]  # one of KINDS
            keys = ("role", "content", "calls", "name", "state", "data", "call_id", "entry")
            entry.payload.update(dict.fromkeys(keys, value))
            keys = ("ts", "sent", "tz", "sender", "attachments", "turn")
            await store.append(TAPE, entry.with_meta(**dict.fromkeys(keys, value)))
    await apart(store, says("xylophone"))
    async for reader in backend.readers():
        assert (await found(reader, "xylophone"))[0] == "xylophone"
        assert len(await found(reader, limit=100)) == len(odd) + 1
        await reader.list_anchors(TAPE)
        since = datetime(2020, 1, 1, tzinfo=UTC)
        assert (await found(reader, "xylophone", since=since))[0] == "xylophone"


async def test_a_tape_of_any_name_keeps_no_other_from_being_searched(backend):
    for name in ("a+b %2F", "nul \x00", "line\nbreak", "👩‍👩‍👧", "x" * 3000):
        await apart(backend.store, "green tea", tape=name)
    await apart(backend.store, "green tea")
    async for store in backend.readers():
        assert len(await found(store, "tea")) == 6
        assert await found(store, "tea", tapes=("a+b %2F",)) == ["green tea"]


# What cannot be answered.


@pytest.mark.parametrize(
    "query",
    [
        SearchQuery("x" * (LONGEST_QUERY + 1)),
        SearchQuery(limit=0),
        SearchQuery(limit=-1),
        SearchQuery(limit=MOST_HITS + 1),
        SearchQuery(neighbours=-1),
        SearchQuery(neighbours=MOST_NEIGHBOURS + 1),
        SearchQuery(kinds=frozenset({"message", "gossip"})),
        SearchQuery(since=datetime(2026, 2, 10)),  # noqa: DTZ001 (wrong on purpose)
        SearchQuery(until=datetime(2026, 2, 10)),  # noqa: DTZ001 (wrong on purpose)
        SearchQuery(after_anchor="here"),
        SearchQuery(before_anchor="here"),
        SearchQuery(after_anchor="here", tapes=()),
        SearchQuery(before_anchor="here", tapes=(TAPE, "other")),
    ],
    ids=lambda query: repr(query)[:40],
)
async def test_what_cannot_be_answered_is_refused_and_told_why(store, query):
    await apart(store, "tea")
    with pytest.raises(InvalidSearch, match=r"\w+"):
        await store.search(query)
    assert await found(store, "tea") == ["tea"]


@pytest.mark.parametrize(
    "text",
    [
        "x" * LONGEST_QUERY,
        "tea " * (LONGEST_QUERY // 4),
        " ".join(invented(363)),
        '"' + "tea " * (LONGEST_QUERY // 4 - 1) + '"',
        '"tea" ' * (LONGEST_QUERY // 6),
        '"' * LONGEST_QUERY,
        "(" * LONGEST_QUERY,
        "".join(map(chr, range(0x4E00, 0x4E00 + LONGEST_QUERY))),
        '"' + "".join(map(chr, range(0x4E00, 0x4E00 + LONGEST_QUERY - 2))) + '"',
        "🍕" * LONGEST_QUERY,
    ],
    ids=[
        *("a word", "one word often", "many words", "a phrase", "many phrases"),
        *("quotes", "brackets", "Chinese", "a Chinese phrase", "emoji"),
    ],
)
async def test_the_longest_query_is_answered(store, text):
    assert len(text) <= LONGEST_QUERY
    await apart(store, "tea", "🍕", "一丁")
    with anyio.fail_after(30):
        assert len(await ask(store, text, limit=MOST_HITS, neighbours=MOST_NEIGHBOURS)) <= 10
        assert await found(store, "tea") == ["tea"]


async def test_searching_writes_nothing_and_makes_no_tape(backend):
    await apart(backend.store, "tea")
    before = await backend.store.read(TAPE)

    for text in ("tea", "", "coffee"):
        await ask(backend.store, text, tapes=(TAPE, "nobody"))
    async for store in backend.readers():
        assert await store.list_tapes() == [TAPE]
        assert await store.read(TAPE) == before
        assert ids(before) == [1, 2, 3]
