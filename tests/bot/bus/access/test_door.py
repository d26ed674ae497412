"""The door, with its real file or database: who comes in, who owns the bot, and what survives."""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from databases import drop, fresh_database
from door_host import at, door_host
from hypothesis import given, settings
from hypothesis import strategies as st
from sampling import examples

from bot.bus import AccessDecision, AccessRequest, Address, BusClosed, BusError, Sender
from bot.bus.access.codes import ClaimRateLimiter
from bot.bus.access.control import MANY_WRONG, open_access_control
from bot.bus.access.messages import NEWCOMER, OWNED, WRONG_CLAIM
from bot.core.errors import SettingsError, TapeLocked
from bot.testing.manual_clock import ManualClock

OWNER = "telegram:1"
SILENCE = AccessDecision(None)


def private(text: str | None = "hello", user="9", channel="telegram"):
    return AccessRequest(
        Address(channel, user), Sender(user, "Eve"), private=True, chat_ids=(user,), text=text
    )


def group(user="9", chat="-100", text=None):
    return AccessRequest(
        Address("telegram", chat), Sender(user, "Eve"), private=False, chat_ids=(chat,), text=text
    )


def code_in(verdict: AccessDecision) -> str:
    assert verdict.role is None
    found = re.search(r"pair (\S+)", verdict.reply or "")
    assert found is not None
    return found[1]


class Chats:
    """Where newcomers are told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []
        self.closed = False

    async def __call__(self, address: Address, text: str) -> None:
        if self.closed:
            raise BusClosed("the bus is closed")
        self.told.append((address.session, text))


@pytest.fixture(params=["file", "postgres"])
def home(request, tmp_path):
    """A home folder, or a database's address."""
    if request.param == "file":
        yield tmp_path
        return
    url = fresh_database()
    yield url
    drop(url)


@asynccontextmanager
async def opened(home: Path | str, *, clock=None, tell=None, owners=(OWNER,), allow=()):
    how = {"owners": owners, "allow": allow, "clock": clock or ManualClock(), "send_notice": tell}
    with anyio.fail_after(60):
        async with at(home) as place, open_access_control(place, **how) as access_control:
            yield access_control


async def test_a_stranger_in_a_group_meets_silence(home):
    async with opened(home) as access_control:
        assert await access_control.authorize(group(text="/start")) == SILENCE
    assert isinstance(home, str) or not (home / "access.json").exists()


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


@pytest.mark.parametrize("form", ["{}", "/start {}", "/claim {}"])
async def test_the_claim_code_makes_its_sender_the_owner_once(home, form):
    async with opened(home, owners=()) as access_control:
        code = access_control.claim_code
        assert code is not None
        assert await access_control.authorize(private(form.format(code))) == AccessDecision(
            None, OWNED
        )
        assert access_control.claim_code is None
        assert await access_control.authorize(private()) == AccessDecision("owner")
        assert (await access_control.authorize(private(form.format(code), user="8"))).role is None
        assert await access_control.authorize(group()) == AccessDecision("owner")
    async with opened(home, owners=()) as access_control:
        assert access_control.claim_code is None
        assert (await access_control.authorize(private(code, user="8"))).role is None
        assert await access_control.authorize(private()) == AccessDecision("owner")


async def test_a_claim_that_comes_again_is_answered_again(home):
    async with opened(home, owners=()) as access_control:
        claim = private(f"/claim {access_control.claim_code}")
        assert (
            await access_control.authorize(claim)
            == await access_control.authorize(claim)
            == AccessDecision(None, OWNED)
        )


async def test_there_is_no_claim_where_the_settings_name_an_owner(home):
    async with opened(home) as access_control:
        assert access_control.claim_code is None


async def test_each_platform_has_an_owner_of_its_own_to_be_claimed(home):
    async with opened(home, owners=()) as access_control:
        code = access_control.claim_code_for("telegram")
        assert await access_control.authorize(private(f"/claim {code}")) == AccessDecision(
            None, OWNED
        )
        assert access_control.claim_code_for("telegram") is None
        assert access_control.claim_code_for("discord") == code
        other = private(f"/claim {code}", channel="discord")
        assert await access_control.authorize(other) == AccessDecision(None, OWNED)
        assert access_control.claim_code_for("discord") is None


async def test_every_run_has_a_claim_code_of_its_own(tmp_path):
    codes = []
    for _ in range(2):
        async with opened(tmp_path, owners=()) as access_control:
            codes.append(access_control.claim_code)
    assert len(set(codes)) == 2


async def test_a_claim_in_a_group_is_none(home):
    async with opened(home, owners=()) as access_control:
        assert await access_control.authorize(group(text=access_control.claim_code)) == SILENCE
        assert access_control.claim_code is not None


async def test_of_many_who_claim_at_once_one_wins(home):
    won = []

    async with opened(home, owners=()) as access_control:
        code = access_control.claim_code

        async def claim(user: str) -> None:
            verdict = await access_control.authorize(private(code, user=user))
            if verdict.reply == OWNED:
                won.append(user)

        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(claim, str(number))
        listing = await access_control.overview()
    assert [f"telegram:{user}" for user in won] == [one.person for one in listing.owners]
    assert len(won) == 1


async def test_a_person_may_guess_the_claim_five_times_an_hour(home):
    clock = ManualClock()
    async with opened(home, owners=(), clock=clock) as access_control:
        code = access_control.claim_code
        for _ in range(ClaimRateLimiter.PER_PERSON):
            assert await access_control.authorize(
                private("/claim ABCD-EFGH-JKMN")
            ) == AccessDecision(None, WRONG_CLAIM)
        assert await access_control.authorize(private(code)) == SILENCE
        assert await access_control.authorize(private(code, user="8")) == AccessDecision(
            None, OWNED
        )


async def test_a_person_may_guess_again_after_an_hour(home):
    clock = ManualClock()
    async with opened(home, owners=(), clock=clock) as access_control:
        for _ in range(ClaimRateLimiter.PER_PERSON):
            await access_control.authorize(private("/claim wrong"))
        assert await access_control.authorize(private(access_control.claim_code)) == SILENCE
        clock.advance(ClaimRateLimiter.WITHIN)
        assert await access_control.authorize(private(access_control.claim_code)) == AccessDecision(
            None, OWNED
        )


async def test_a_crowd_that_guesses_does_not_keep_the_owner_out_and_is_logged_once(home, caplog):
    async with opened(home, owners=()) as access_control:
        for number in range(ClaimRateLimiter.MANY * 2):
            guess = private(
                "/claim ABCD-EFGH-JKMN", user=str(100 + number // ClaimRateLimiter.PER_PERSON)
            )
            assert await access_control.authorize(guess) == AccessDecision(None, WRONG_CLAIM)
        warnings = [record for record in caplog.records if record.levelname == "WARNING"]
        assert [record.getMessage() for record in warnings] == [MANY_WRONG]
        assert await access_control.authorize(private(access_control.claim_code)) == AccessDecision(
            None, OWNED
        )


async def test_a_member_may_claim_and_a_members_message_that_looks_like_a_code_is_one(home):
    async with opened(home, owners=(), allow=("telegram:9",)) as access_control:
        assert await access_control.authorize(private("ABCD-EFGH-JKMN")) == AccessDecision("member")
        assert await access_control.authorize(private("/claim ABCD")) == AccessDecision(
            None, WRONG_CLAIM
        )
        assert await access_control.authorize(private(access_control.claim_code)) == AccessDecision(
            None, OWNED
        )


async def test_without_an_owner_a_stranger_is_told_how_the_bot_gets_one(home):
    async with opened(home, owners=()) as access_control:
        told = await access_control.authorize(private("/start"))
        assert "claim code" in (told.reply or "")
        assert await access_control.approve(code_in(told)) is not None
        assert await access_control.authorize(private()) == AccessDecision("member")
        assert access_control.claim_code is not None


async def test_a_claim_that_cannot_be_recorded_is_refused_and_can_be_made_again(tmp_path):
    async with opened(tmp_path, owners=()) as access_control:
        in_the_way = tmp_path / "access.json.new"
        in_the_way.mkdir()
        claim = private(access_control.claim_code)
        with pytest.raises(BusError, match="could not be saved"):
            await access_control.authorize(claim)
        assert (await access_control.overview()).owners == ()
        in_the_way.rmdir()
        assert await access_control.authorize(claim) == AccessDecision(None, OWNED)


async def test_an_approval_that_was_refused_at_its_last_step_is_not_there_after_a_restart(
    tmp_path, monkeypatch
):
    """The file is replaced already when the folder cannot be synchronised."""
    sync, refusals = os.fsync, [1]

    def refusing(descriptor: int) -> None:
        if refusals and stat.S_ISDIR(os.fstat(descriptor).st_mode):
            refusals.pop()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    async with opened(tmp_path) as access_control:
        code = code_in(await access_control.authorize(private()))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refusing)
            with pytest.raises(BusError, match="could not be saved: the disk does not work"):
                await access_control.approve(code)
    assert not refusals
    async with opened(tmp_path) as access_control:
        assert (await access_control.authorize(private())).role is None
        assert await access_control.approve(code) is not None
        assert await access_control.authorize(private()) == AccessDecision("member")


async def test_a_cancelled_approval_is_done_or_not_and_the_door_goes_on(home):
    async with opened(home) as access_control:
        code = code_in(await access_control.authorize(private()))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(access_control.approve, code)
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        verdict = await access_control.authorize(private())
        assert await access_control.approve(code) is not None
    async with opened(home) as access_control:
        assert await access_control.authorize(private()) == AccessDecision("member")
    assert verdict in (SILENCE, AccessDecision("member"))


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


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b'{"version": 1, "people": [',
        b'{"version": 2, "people": [], "chats": [], "requests": []}',
        b'{"version": 1, "people": [{"place": "telegram:9", "role": "admin", "name": "",'
        b' "since": "2026-02-10T10:00:00Z"}], "chats": [], "requests": []}',
        b'{"version": 1, "people": [{"place": "everybody", "role": "owner", "name": "",'
        b' "since": "2026-02-10T10:00:00Z"}], "chats": [], "requests": []}',
        b'{"version": 1, "people": [{"place": "telegram:9", "role": "owner", "name": "",'
        b' "since": "2026-02-10T10:00:00"}], "chats": [], "requests": []}',
        b'{"version": 1, "people": [], "chats": [], "requests": [{"code": "A", "person":'
        b' "telegram:9", "name": "", "address": {"channel": "Bad name", "chat_id": "9"},'
        b' "since": "2026-02-10T10:00:00Z", "told": "2026-02-10T10:00:00Z"}]}',
        b"\xff\xfe",
    ],
)
async def test_a_damaged_file_is_an_error_that_says_what_to_do_and_is_kept(tmp_path, content):
    path = tmp_path / "access.json"
    path.write_bytes(content)
    with pytest.raises(
        SettingsError, match=r"is damaged or from another version.*move the file away"
    ):
        async with opened(tmp_path):
            pass
    assert path.read_bytes() == content
    path.unlink()
    async with opened(tmp_path) as access_control:
        assert (await access_control.authorize(private())).role is None


async def test_a_file_that_cannot_be_used_lets_nobody_in(tmp_path):
    (tmp_path / "access.json").mkdir()
    with pytest.raises(SettingsError, match="cannot be used"):
        async with opened(tmp_path):
            pass
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="cannot be used"):
        async with opened(tmp_path / "file" / "home"):
            pass


async def test_the_file_is_its_owners_alone(tmp_path):
    async with opened(tmp_path / "home") as access_control:
        await access_control.authorize(private())
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").iterdir()}
    assert modes == {"access.json": 0o600, "access.lock": 0o600}


async def test_two_processes_cannot_have_the_file_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("bot.bus.access.file_store._LOCK_SECONDS", 0.0)
    async with opened(tmp_path):
        with pytest.raises(TapeLocked, match="another tapebot"):
            async with opened(tmp_path):
                pass
    async with opened(tmp_path):
        pass


async def test_nothing_that_a_stranger_wrote_is_logged(home, caplog):
    caplog.set_level("DEBUG")
    async with opened(home, owners=()) as access_control:
        for text in ("a secret of mine", "/claim mysecretword", "ABCD-EFGH-JKMN"):
            code_in_reply = (await access_control.authorize(private(text))).reply or ""
            assert text not in code_in_reply
    assert "telegram:9" in caplog.text
    assert not any(word in caplog.text for word in ("secret", "Eve", "ABCD"))


def _killed_after(home: Path | str, first: int, count: int) -> list[str]:
    """Let people in until so many were reported, kill the program, and return all of them."""
    with door_host(home, first) as child:
        reported = [child.stdout.readline().strip() for _ in range(count)]
        os.kill(child.pid, signal.SIGKILL)
        return [one for one in (*reported, *child.stdout.read().split()) if one]


async def test_whoever_was_let_in_is_in_after_a_kill(home):
    inside: list[str] = []
    for first, count in ((1_000, 1), (2_000, 7), (3_000, 20)):
        inside += _killed_after(home, first, count)
        async with opened(home) as access_control:
            for user in inside:
                assert await access_control.authorize(private(user=user)) == AccessDecision(
                    "member"
                )
            assert (await access_control.authorize(private(user="5"))).role is None
    assert len(inside) >= 28


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
