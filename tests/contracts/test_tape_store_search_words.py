"""Words, phrases and signs of any script are found in every store, mistyped or not."""

from __future__ import annotations

import pytest
from searching import apart, ask, found, invented
from tape_talk import says, talk

# Any script.


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("你好", "你好"),
        ("我喜欢喝咖啡", "喜欢咖啡"),
        ("用iPhone手机拍的", "iphone"),
        ("Viele Grüße aus Köln", "GRÜSSE"),
        ("Viele Grüße aus Köln", "grusse"),
        ("Viele Grüße aus Köln", "Gru\u0308ße"),
        ("naïve café", "cafe"),
        ("Это моя книга", "книги"),
        ("Ещё чаю", "еще"),
        ("اشتريت الكتاب", "كتاب"),
        ("هذا كِتَاب", "كتاب"),
        ("יש לי שאלה על התה", "שאלה"),
        ("שָׁלוֹם לכם", "שלום"),
        ("ฉันชอบกาแฟ", "กาแฟ"),
        ("コーヒーが大好きです", "大好き"),
        ("東京に行きました", "東京"),
        ("ｶﾀｶﾅ ＡＢＣ", "カタカナ"),
        ("커피를 좋아해요", "커피"),
        ("मुझे चाय पसंद है", "चाय"),
        ("Ο Οδυσσεύς γύρισε", "ΟΔΥΣΣΕΥΣ"),
        ("She was running home", "run"),
        ("Ada's bicycle", "Ada bicycles"),
        ("pizza 🍕 tonight", "🍕"),
        ("see https://example.org/recipes", "recipes"),
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
        ("to be or not to be", '"to be or not to be"'),
        ("first line\nsecond line\n\nthird line", '"line second line third"'),
        ("well, it's (almost) done: finally!", '"almost done: finally"'),
        ("he said “no” twice", '"said no twice"'),
        ("我喜欢喝咖啡", '"喝咖啡"'),
        ("コーヒーが大好きです", "「大好き」"),
        ("コーヒーが大好きです", "『大好き』"),
        *(("I like green tea a lot", f"{a}green tea{b}") for a, b in ("“”", "„“", "„”", "«»")),
    ],
)
async def test_a_phrase_is_found_whatever_lines_and_punctuation_it_holds(backend, text, query):
    await apart(backend.store, "tea is green", "好大き", "啡咖喝", "to not be or be to", text)
    async for store in backend.readers():
        assert await found(store, query) == [text]


async def test_a_phrase_alone_must_be_there_as_it_is(store):
    await apart(store, "green tea", "tea, green", "green and black tea", "green", "tea")
    assert await found(store, '"green tea"') == ["green tea"]
    assert await found(store, '"tea green"') == ["tea, green"]


async def test_a_phrase_that_nobody_said_is_found_by_its_words(store):
    await apart(store, "green", "tea", "cake")
    assert set(await found(store, '"green tea"')) == {"green", "tea"}
    assert await found(store, 'cake "no such phrase"') == ["cake"]
    assert await found(store, '"no such phrase"') == []
    assert await found(store, '"gren"') == []
    assert await found(store, "gren") == ["green"]


async def test_a_phrase_does_not_reach_from_one_message_into_the_next(store):
    await talk(store, "green", "tea", "and", "now", "then", "green tea")
    assert await found(store, '"green tea"') == ["green tea"]


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


async def test_words_anywhere_in_a_long_text_are_found_and_the_entry_is_one_hit(store):
    words = invented(3000)
    [entry] = await apart(store, " ".join(words))
    for word in (words[0], words[1499], words[2999]):
        assert [hit.entry.id for hit in await ask(store, word)] == [entry.id]
    assert len(await ask(store, f"{words[0]} {words[1499]} {words[2999]}")) == 1


# Signs.


SIGNS = '" "" “” «» ?!… () * - ^ : 🍕 👩‍👩‍👧 \' _ \\ % \x00 \ud83d \u200d \u0301 ؟ 。 ½ ٣'.split(
    " "
)


async def test_a_query_of_signs_alone_is_no_error(store):
    await apart(store, "green tea", "你好")
    for query in SIGNS:
        assert isinstance(await ask(store, query), list), ascii(query)
    assert await found(store, "tea") == ["green tea"]


SYNTAX = (
    "tea AND|OR tea OR|NOT tea|NEAR(tea green, 2)|tea*|^tea|terms:tea|{terms words}: tea|-tea|+tea + green|((((tea"
    '|tea)|tea"|"tea|"tea" "|\'tea|tea; DROP TABLE docs; --|tea%|tea\\|tea\x00|\ud83d tea|<tea>|tea~1|[tea]'
).split("|")


async def test_what_is_syntax_elsewhere_is_plain_text(store):
    await apart(store, "green tea", "nothing of the kind")
    for query in SYNTAX:
        assert "green tea" in await found(store, query), ascii(query)
    assert await found(store, "tea") == ["green tea"]


async def test_texts_of_signs_and_halves_of_signs_keep_nothing_else_from_being_found(backend):
    odd = ["", " ", '"', "\x00", "\ud83d", "\ud83d\ude00", "tea \ud83d cup", "pot\x00lid", "\u0301"]
    await apart(backend.store, *odd, "green tea")
    async for store in backend.readers():
        assert sorted(await found(store, "tea")) == sorted(["tea \ud83d cup", "green tea"])
        assert await found(store, "lid") == ["pot\x00lid"]
        assert len(await found(store, limit=50)) == 10


# Hyphens and typing errors.


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("email", "send me an e-mail"),
        ("e-mail", "send me an email"),
        ("wellknown", "a well-known place"),
        ("well-known", "a wellknown place"),
    ],
)
async def test_a_word_is_found_with_and_without_its_hyphen(store, query, text):
    await apart(store, "something else entirely", text)
    assert await found(store, query) == [text]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("restarant", "a nice restaurant"),
        ("restaurent", "a nice restaurant"),
        ("сабака", "большая собака"),
        ("grüsze", "viele Grüße"),
    ],
)
async def test_a_word_that_was_mistyped_is_found(backend, query, text):
    await apart(backend.store, "the bus station", "две книги", text)
    async for store in backend.readers():
        assert await found(store, query) == [text]


@pytest.mark.parametrize(("query", "text"), [("cta", "the cat"), ("dgo", "a dog"), ("te", "tea")])
async def test_short_words_are_not_taken_for_each_other(store, query, text):
    await apart(store, text)
    assert await found(store, query) == []


async def test_a_word_as_it_was_typed_comes_before_one_that_is_like_it(store):
    await apart(store, "the planet", "the planer", "the planets")
    assert (await found(store, "planer"))[0] == "the planer"


@pytest.mark.parametrize(
    ("query", "month"),
    [
        ("the concert of last summer", 7),
        ("das Konzert im Winter: concert", 1),
        ("concert in May", 5),
    ],
)
async def test_a_season_or_month_weighs_and_excludes_nothing(store, query, month):
    said = {one: f"a concert, number {one}" for one in (1, 5, 7, 10)}
    entries = [says(text, sent=f"2025-{one:02}-15T10:00:00+00:00") for one, text in said.items()]
    await apart(store, *entries)
    hits = await found(store, query)
    assert hits[0] == said[month]
    assert set(hits) == set(said.values())
