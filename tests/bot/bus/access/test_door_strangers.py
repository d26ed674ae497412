"""Strangers and members at the door, with its real file or database: who comes in, and who never does."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
from door_talk import OWNER, SILENCE, code_in, group, opened, private
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus import AccessDecision, AccessRequest, Address, BusClosed, Sender
from bot.bus.access.messages import NEWCOMER, OWNED
from bot.testing.manual_clock import ManualClock


class Chats:
    """Where newcomers are told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.closed = False

    async def __call__(self, address: Address, text: str) -> None:
        if self.closed:
            raise BusClosed("the bus is closed")
        self.told.append((address.session, text))


async def test_a_stranger_in_a_group_meets_silence(home):
    async with opened(home) as access_control:
        assert await access_control.authorize(group(text="/start")) == SILENCE
    assert isinstance(home, str) or not (home / "access.json").exists()


async def test_what_comes_unasked_is_for_those_who_have_access_still(home):
    async with opened(home) as access_control:
        code = code_in(await access_control.authorize(private()))
        assert not await access_control.still_has_access(Address("telegram", "9"), "9")
        await access_control.approve(code)
        chats = [("telegram", "9"), ("telegram-work", "9"), ("web", "telegram.9")]
        for channel, person in chats:
            assert await access_control.still_has_access(Address(channel, person), person)
        await access_control.remove("telegram:9")
        for channel, person in chats:
            assert not await access_control.still_has_access(Address(channel, person), person)
        for channel, person in [("telegram", "1"), ("console", "local"), ("web", "local")]:
            assert await access_control.still_has_access(Address(channel, person), person)


async def test_a_stranger_who_writes_nothing_meets_silence(home):
    async with opened(home) as access_control:
        assert await access_control.authorize(private(None)) == SILENCE


async def test_a_stranger_comes_in_with_the_code_that_an_owner_approves(home):
    chats = Chats()
    async with opened(home, tell=chats) as access_control:
        code = code_in(await access_control.authorize(private()))
        assert await access_control.authorize(private()) == SILENCE
        paired = await access_control.approve(code.lower().replace("-", ""))
        assert paired is not None
        assert (paired.person, paired.name, paired.notified) == ("telegram:9", "Eve", True)
        assert await access_control.authorize(private()) == AccessDecision("member")
        assert await access_control.authorize(group()) == SILENCE
    assert chats.told == [("telegram:9", NEWCOMER)]


async def test_a_code_of_a_stranger_does_not_let_the_stranger_in(home):
    async with opened(home) as access_control:
        code = code_in(await access_control.authorize(private()))
        for text in (code, f"/pair {code}", f"/start {code}", f"/claim {code}"):
            assert (await access_control.authorize(private(text))).role is None
            assert (await access_control.authorize(private(text, user="8"))).role is None


async def test_a_code_survives_a_restart_and_ends_after_ten_minutes(home):
    clock = ManualClock()
    async with opened(home, clock=clock) as access_control:
        code = code_in(await access_control.authorize(private()))
    clock.advance(599)
    async with opened(home, clock=clock) as access_control:
        assert code_in(await access_control.authorize(private())) == code
        clock.advance(1)
        assert await access_control.approve(code) is None
        assert code_in(await access_control.authorize(private())) != code


async def test_somebody_who_was_let_in_is_in_after_a_restart_until_removed(home):
    async with opened(home) as access_control:
        await access_control.approve(code_in(await access_control.authorize(private())))
    async with opened(home) as access_control:
        assert await access_control.authorize(private(channel="telegram-work")) == AccessDecision(
            "member"
        )
        assert await access_control.remove("telegram:9") == "removed"
        assert (await access_control.authorize(private())).role is None
    async with opened(home) as access_control:
        assert (await access_control.authorize(private())).role is None


async def test_a_newcomer_who_cannot_be_told_is_in_all_the_same(home):
    chats = Chats()
    chats.closed = True
    async with opened(home, tell=chats) as access_control:
        code = code_in(await access_control.authorize(private()))
        paired = await access_control.approve(code)
        assert paired is not None
        assert not paired.notified
        assert await access_control.authorize(private()) == AccessDecision("member")
        chats.closed = False
        assert (await access_control.approve(code)) is not None
    assert len(chats.told) == 1


async def test_everybody_in_an_allowed_chat_is_a_member_there(home):
    async with opened(home) as access_control:
        assert await access_control.allow_chat("telegram-work:-100") == "telegram:-100"
        assert await access_control.allow_chat("nonsense") is None
        assert await access_control.authorize(group()) == AccessDecision("member")
        assert await access_control.authorize(group(chat="-200")) == SILENCE
        assert (await access_control.authorize(private())).role is None
        assert await access_control.remove("telegram:-100") == "removed"
        assert await access_control.authorize(group()) == SILENCE


async def test_whoever_writes_while_being_let_in_is_not_asked_for_a_code(home):
    verdicts = []
    clock = ManualClock()
    async with opened(home, clock=clock) as access_control:
        code = code_in(await access_control.authorize(private()))
        clock.advance(60)

        async def write() -> None:
            verdicts.append(await access_control.authorize(private()))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(access_control.approve, code)
            tasks.start_soon(write)
    assert verdicts == [AccessDecision("member")]


async def test_nothing_that_a_stranger_wrote_is_logged(home, caplog):
    caplog.set_level("DEBUG")
    async with opened(home, owners=()) as access_control:
        for text in ("a secret of mine", "/claim mysecretword", "ABCD-EFGH-JKMN"):
            code_in_reply = (await access_control.authorize(private(text))).reply or ""
            assert text not in code_in_reply
    assert "telegram:9" in caplog.text
    assert not any(word in caplog.text for word in ("secret", "Eve", "ABCD"))


_texts = st.one_of(
    st.none(),
    st.text(max_size=30),
    st.sampled_from(["/start", "/pair here", "/pair telegram:9", OWNED, "yes", "{told}"]),
    st.text("ABCDEFGH23456789", min_size=12, max_size=12).map("/claim {}".format),
)


_knocks = st.builds(
    lambda user, channel, name, private, chat, text: (
        user,
        AccessRequest(Address(channel, chat), Sender(user, name), private, (chat,), text),
    ),
    st.sampled_from(["7", "8", "9", "telegram:1", "01", " 1", "-200", "1\n"]),
    st.sampled_from(["telegram", "telegram-work", "discord"]),
    st.sampled_from(["Eve", "1", "-100", "telegram:1", "owner"]),
    st.booleans(),
    st.sampled_from(["7", "9", "-200", "1"]),
    _texts,
)


@given(
    knocks=st.lists(st.tuples(_knocks, st.integers(0, 900)), max_size=25),
    owners=st.sampled_from([(), (OWNER,)]),
)
@settings(max_examples=examples(150))
def test_no_sequence_of_strangers_messages_ever_yields_a_role(knocks, owners):
    async def run(home: Path) -> None:
        clock = ManualClock()
        told = "nothing"
        async with opened(
            home, clock=clock, owners=owners, allow=("telegram:-100", "discord:2")
        ) as access_control:
            for (_, access_request), seconds in knocks:
                text = (
                    None
                    if access_request.text is None
                    else access_request.text.replace("{told}", told)
                )
                verdict = await access_control.authorize(
                    AccessRequest(
                        access_request.address,
                        access_request.sender,
                        access_request.private,
                        access_request.chat_ids,
                        text,
                    )
                )
                assert verdict.role is None
                assert verdict.reply != OWNED
                assert access_request.private or verdict.reply is None
                told = verdict.reply.split("pair ")[-1][:9] if verdict.reply else told
                clock.advance(seconds)
            listing = await access_control.overview()
        assert (listing.owners, listing.members, listing.chats) == ((), (), ())
        assert len(listing.pending) <= 20

    with tempfile.TemporaryDirectory() as folder:
        anyio.run(run, Path(folder))
