"""The web channel below open pages: what they are shown, whatever happens in between."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import anyio
import httpx
import pytest
from fastapi import FastAPI
from web_chat import ADA, EVE, ChatSite, Page, opened
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from bot.bus import (
    AccessDecision,
    AccessRequest,
    Activity,
    Address,
    Answer,
    Attachment,
    Authorizer,
    Button,
    InvalidInbound,
    OutgoingFile,
    RemoteFile,
)
from bot.inspector.transcript import TapeTranscript
from bot.memory.records.tombstones import tombstone
from bot.tape.entries import event
from bot.testing.host import Host, HostLimits, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply
from channels.base import ChannelContext, GroupPolicy, MenuCommand
from channels.web import WebChannel, socket
from channels.web import conversation as rooms
from channels.web.conversation import (
    MAX_QUEUED_CHARACTERS,
    MAX_QUEUED_FRAMES,
    ConversationRegistry,
    PageQueue,
)
from channels.web.notices import NoticeStore
from channels.web.routes import CHUNK_BYTES, MAX_CONCURRENT_DOWNLOADS, ChatRoutes, UserSlots
from channels.web.socket import (
    MAX_PAGES_PER_USER,
    NOT_LOGGED_IN,
    TOO_MANY,
    TOO_SLOW,
    WRONG_ORIGIN,
    ConnectionContext,
    SocketServer,
)
from channels.web.uploads import UploadStore

SESSION = "web:local"
joined = partial(connect, proxy=None, open_timeout=60)


class Door:
    """Lets in whom the test lets in."""

    def __init__(self) -> None:
        self.inside = {ADA.id}
        self.knocks: list[AccessRequest] = []

    async def authorize(self, access_request: AccessRequest) -> AccessDecision:
        self.knocks.append(access_request)
        return AccessDecision("owner" if access_request.sender.id in self.inside else None)


class Keeps:
    """Keeps files by name."""

    def __init__(self, site: ChatSite) -> None:
        self._site = site

    async def receive(self, file: RemoteFile) -> Attachment:
        data = await file.fetch(1_000_000)
        self._site.blobs[file.name] = data
        return Attachment(file.kind, file.name, file.mime, len(data), file.name)


@dataclass
class Stage:
    """The program with the channel."""

    host: Host
    site: ChatSite
    access_control: Door
    folder: Path

    async def lines(self, session: str = SESSION) -> list[tuple[str, str]]:
        """Return what the tape says was said."""
        return [(one.author, one.text) for one in await self.site.transcript.newest(session, 100)]

    async def send(self, path: str, visitor: str = ADA.id, **kept: object) -> httpx.Response:
        headers = {"Authorization": f"Bearer {visitor}", **kept.pop("headers", {})}  # type: ignore[dict-item]
        async with httpx.AsyncClient(
            base_url=str(self.site.url), headers=headers, timeout=60
        ) as client:
            return await client.post(path, **kept)  # type: ignore[arg-type]

    async def upload(self, name: str, data: bytes, mime: str = "image/png") -> str:
        """Upload a file; return its id."""
        headers = {"Content-Type": mime}
        answer = await self.send(f"/chat/uploads?name={name}", content=data, headers=headers)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])


@asynccontextmanager
async def program(
    folder: Path, model: ScriptedModel, *, check_seconds: float = 60, limit: int = 100
) -> AsyncIterator[Stage]:
    """Run sessions and the web channel; opened again on a folder it goes on there."""
    async with AsyncExitStack() as stack:
        bounds = HostLimits(window=1_000, session_limit=limit)
        host = await stack.enter_async_context(session_host(folder, model, bounds=bounds))
        site = ChatSite(TapeTranscript(host.store, host.services.exports))
        access_control = Door()
        access: Authorizer = access_control
        menu = (MenuCommand("memory", "What I know", (("undo", "take back"),)),)
        place = folder / "channel"
        platform = ChannelContext(access, Keeps(site), menu, GroupPolicy(), place, lambda _: None)
        channel = WebChannel(platform, site, most_bytes=1_000, check_seconds=check_seconds)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(channel.run, host.bus.channel("web"))
        await host.wait_until(lambda: site.url is not None)
        yield Stage(host, site, access_control, place)


@pytest.fixture
async def stage(tmp_path) -> AsyncIterator[Stage]:
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("**Hello** Ada"))) as stage:
        yield stage


@pytest.fixture
async def page(stage: Stage) -> AsyncIterator[Page]:
    async with opened(stage.site) as page:
        await page.until(lambda: page.rows or page.welcome)
        yield page


async def closed(socket: ClientConnection, *, ignoring: bool = False) -> int | None:
    """Return the code that a connection is closed with; nothing may come before, or it is ignored."""
    with anyio.fail_after(30), suppress(ConnectionClosed):
        async for frame in socket:
            assert ignoring, frame
    return socket.close_code


async def talked(page: Page, text: str) -> None:
    """Say something, and wait for its answer."""
    count = len(page.said("bot"))
    await page.say(text)
    await page.until(lambda: len(page.said("bot")) > count)


async def test_a_message_is_answered_in_formatted_text_and_is_a_row_with_a_place(stage, page):
    await talked(page, "hi <b>there</b>")
    heard, answer = page.rows.values()
    assert (heard["author"], heard["text"], heard["html"]) == ("person", "hi <b>there</b>", None)
    assert answer["html"].strip() == "<p><strong>Hello</strong> Ada</p>"
    assert 0 < heard["position"] < answer["position"]
    await page.until(lambda: page.unsent == {})
    await stage.host.wait_for_pending(0)


async def test_the_welcome_says_who_one_is_and_what_can_be_commanded(page):
    assert page.welcome == {
        "type": "welcome",
        "session": SESSION,
        "name": "Ada",
        "role": "owner",
        "commands": [
            {"name": "memory", "summary": "What I know", "forms": [["undo", "take back"]]}
        ],
        "max_bytes": 1_000,
    }


async def test_two_pages_show_the_same_and_each_what_the_other_said(stage, page):
    async with opened(stage.site) as other:
        await other.until(lambda: other.welcome)
        await talked(page, "one")
        await talked(other, "two")
        await page.until(lambda: len(page.rows) == 4)
        await other.until(lambda: len(other.rows) == 4)
        assert list(page.rows) == list(other.rows)
        assert page.said("person") == ["one", "two"]


async def test_a_page_that_comes_in_mid_answer_gets_what_was_said_and_the_answer_so_far(tmp_path):
    held = PausedStep(text_reply("The whole story."), partial="The whole")
    async with program(tmp_path, ScriptedModel([held])) as stage, opened(stage.site) as page:
        await page.until(lambda: page.welcome)
        await page.say("tell me")
        await page.until(lambda: page.partial)
        async with opened(stage.site) as other:
            await other.until(lambda: other.partial and other.activity == "thinking")
            assert other.said("person") == ["tell me"]
            assert "The whole" in other.partial["html"]
            held.release.set()
            await other.until(lambda: other.said("bot"))
            assert other.texts == ["The whole story."]
        await page.until(lambda: page.activity == "idle" and page.said("bot"))
        assert page.texts == ["The whole story."]


async def test_a_page_that_comes_back_gets_what_it_lacks_and_nothing_twice(stage, page):
    await talked(page, "one")
    async with opened(stage.site) as other:
        other.position, other.mark = page.position, page.mark
        await talked(page, "two")
        await other.until(lambda: len(other.rows) == 2)
        lines = [frame for frame in other.frames if frame["type"] == "lines"]
        shown = [row["id"] for frame in lines for row in frame["lines"] if row["position"]]
        assert lines[0]["reset"] is False
        assert len(shown) == len(set(shown)) == 2
    # A place that is no line's: it begins anew.
    async with opened(stage.site) as stale:
        stale.position, stale.mark = 999_999, page.mark
        await stale.until(lambda: len(stale.rows) == 4)
        assert stale.frames[1]["reset"] is True


async def test_a_server_that_was_killed_mid_answer_shows_everything_once_after_its_start(tmp_path):
    pages: list[Page] = []
    held = PausedStep(text_reply("never said"), partial="half of")
    async with program(tmp_path, ScriptedModel([held])) as stage, opened(stage.site) as page:
        await page.until(lambda: page.welcome)
        await page.say("tell me")
        await page.until(lambda: page.partial)
        pages.append(page)
    seen = pages[0]
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("All of it."))) as stage:
        async with opened(stage.site) as page:
            page.rows, page.position = dict(seen.rows), seen.position
            await page.until(lambda: page.said("bot"))
            await stage.host.wait_for_pending(0)
            assert (page.said("person"), page.texts) == (["tell me"], ["All of it."])
        assert await stage.lines() == [("person", "tell me"), ("bot", "All of it.")]


async def test_a_message_that_is_said_again_with_its_id_is_taken_once(stage, page):
    for _ in range(3):
        await page.say("only once", message="0123456789")
    await page.until(lambda: sum(f["type"] == "accepted" for f in page.frames) == 3)
    await page.until(lambda: page.said("bot"))
    await stage.host.wait_for_pending(0)
    assert await stage.lines() == [("person", "only once"), ("bot", "**Hello** Ada")]
    told = [f["duplicate"] for f in page.frames if f["type"] == "accepted"]
    assert told == [False, True, True]


async def test_what_cannot_be_understood_is_refused_and_the_page_goes_on(stage, page):
    frames = ["", "no JSON", "[" * 100_000, "{}", '{"type":"say","id":"x","text":"a"}', b"\x00\xff",
              '{"type":"say","id":"0123456789","text":"a","more":1}', '{"type":"older","before":0}',
              json.dumps({"type": "say", "id": "0123456789", "text": "a" * 32_001}),
              json.dumps({"type": "say", "id": "0123456789", "text": " \u200b"}),
              '{"type":"press","id":"0123456789","command":"no command","message":"m"}']  # fmt: skip
    for frame in frames:
        await page.raw(frame)
    await page.until(lambda: len(page.refused) == len(frames))
    assert any("at most 32,000 are allowed" in one for one in page.refused)
    await talked(page, "still here \ud800 \x00")
    assert page.said("person") == ["still here � "[:-1]]
    assert page.connections == 1


async def test_a_slow_page_is_closed_and_no_other(stage, page):
    tab = PageQueue()
    for number in range(MAX_QUEUED_FRAMES):
        tab.put(str(number))
    assert not tab.overflowed.is_set()
    tab.put("one more")
    assert tab.overflowed.is_set()
    assert [await tab.get() for _ in range(MAX_QUEUED_FRAMES)] == [
        str(n) for n in range(MAX_QUEUED_FRAMES)
    ]


@pytest.mark.slow
async def test_a_page_that_does_not_read_is_closed_while_others_go_on(stage, page):
    url = f"{stage.site.url}/chat/socket?after=0".replace("http", "ws", 1)
    headers = {"Authorization": f"Bearer {ADA.id}"}
    async with joined(url, additional_headers=headers, max_queue=1, compression=None) as slow:
        await slow.recv()
        for number in range(MAX_QUEUED_FRAMES + 80):
            notice = Answer(ADA.address, f"big-{number}", "word " * 40_000)
            await stage.host.bus.send(notice)
            # The page that reads is never far behind, however busy the machine is.
            await page.until(lambda: len(page.said("notice")) >= number - 20)  # noqa: B023
        await page.until(lambda: len(page.said("notice")) >= MAX_QUEUED_FRAMES + 80)
        await talked(page, "and now?")
        assert await closed(slow, ignoring=True) in (TOO_SLOW, 1006)
    assert page.codes == []


async def test_pages_that_are_gone_without_a_word_give_their_places_to_others(stage, monkeypatch):
    monkeypatch.setattr(socket, "SEND_TIMEOUT_SECONDS", 0.3)
    url = f"{stage.site.url}/chat/socket?after=0".replace("http", "ws", 1)
    headers = {"Authorization": f"Bearer {ADA.id}"}
    async with AsyncExitStack() as stack:
        for _ in range(MAX_PAGES_PER_USER):
            asleep = joined(
                url, additional_headers=headers, max_queue=1, compression=None, close_timeout=0.1
            )
            silent = await stack.enter_async_context(asleep)
            # It does not say that it goes at the end either, nor is it waited for.
            stack.callback(silent.transport.abort)
            await silent.recv()
        # Fewer frames than make a page a slow one, and more bytes than lie on their way.
        for number in range(MAX_QUEUED_FRAMES // 2):
            await stage.host.bus.send(Answer(ADA.address, f"big-{number}", "word " * 80_000))
        page = await stack.enter_async_context(opened(stage.site))
        await page.until(lambda: page.welcome, within=30)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Authorization": "Bearer nobody"}, NOT_LOGGED_IN),
        ({"Authorization": "Bearer local", "Origin": "https://evil.example"}, WRONG_ORIGIN),
        ({"Authorization": "Bearer local", "Origin": "null"}, WRONG_ORIGIN),
    ],
    ids=["nobody", "elsewhere", "sandboxed"],
)
async def test_a_connection_of_nobody_or_of_another_site_is_closed(stage, headers, code):
    url = f"{stage.site.url}/chat/socket".replace("http", "ws", 1)
    async with joined(url, additional_headers=headers) as socket:
        assert await closed(socket) == code


async def test_a_visitor_has_so_many_pages_open_and_no_more(stage):
    url = f"{stage.site.url}/chat/socket".replace("http", "ws", 1)
    headers = {"Authorization": f"Bearer {ADA.id}"}
    async with AsyncExitStack() as stack:
        for _ in range(MAX_PAGES_PER_USER):
            one = await stack.enter_async_context(joined(url, additional_headers=headers))
            assert json.loads(await one.recv())["type"] == "welcome"
        async with joined(url, additional_headers=headers) as more:
            assert await closed(more) == TOO_MANY


async def test_who_may_not_is_told_and_nothing_of_theirs_is_taken(stage):
    async with opened(stage.site, EVE.id) as page:
        await page.until(lambda: page.welcome)
        await page.say("let me in", files=())
        await page.until(lambda: page.refused)
    assert "may no longer use this bot" in page.refused[0]
    assert await stage.lines("web:telegram.13") == []
    assert (await stage.host.bus.statistics())["pending"] == 0
    assert stage.access_control.knocks[-1].sender.id == EVE.id


async def test_who_is_shut_out_meanwhile_is_refused_with_the_next_message(stage, page):
    await talked(page, "hi")
    stage.access_control.inside.clear()
    await page.say("and now?")
    await page.until(lambda: page.refused)
    assert page.said("person") == ["hi"]


async def test_a_login_that_ends_is_noticed_without_a_word(tmp_path):
    async with AsyncExitStack() as stack:
        running = program(tmp_path, ScriptedModel(), check_seconds=0.05)
        stage = await stack.enter_async_context(running)
        page = await stack.enter_async_context(opened(stage.site))
        await page.until(lambda: page.welcome)
        del stage.site.people[ADA.id]
        await page.until(lambda: page.codes)
        ended = [frame for frame in page.frames if frame["type"] == "ended"]
        assert "Log in" in ended[0]["text"]
        assert page.codes[0] == NOT_LOGGED_IN


@pytest.mark.slow
async def test_older_lines_come_in_portions_until_there_are_no_more(stage, page):
    for number in range(60):
        await talked(page, f"message {number}")
    async with opened(stage.site) as other:
        await other.until(lambda: len(other.rows) == 50)
        assert other.frames[1]["older"] is True
        first = next(iter(other.rows.values()))["position"]
        found: list[dict] = []
        more = True
        while more:
            other.frames.clear()
            await other.raw(json.dumps({"type": "older", "before": first}))
            await other.until(lambda: any(one["type"] == "older" for one in other.frames))
            frame = next(one for one in other.frames if one["type"] == "older")
            found, more = [*frame["lines"], *found], frame["more"]
            first = found[0]["position"]
        assert [*(row["id"] for row in found), *other.rows] == list(page.rows)


async def test_an_upload_goes_with_its_message_and_is_shown_to_its_sender_alone(stage, page):
    data = b"\x89PNG not quite"
    upload = await stage.upload("..%2F..%2Fcat.png", data)
    kept = [path for path in stage.folder.rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    await page.say("look", files=(upload,))
    await page.until(lambda: page.said("bot"))
    row = next(iter(page.rows.values()))
    (file,) = row["attachments"]
    assert (file["kind"], file["name"], file["mime"]) == ("image", "cat.png", "image/png")
    answer = await page.fetch(file["url"])
    assert (answer.content, answer.headers["content-type"]) == (data, "image/png")
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    async with opened(stage.site, EVE.id) as other:
        assert (await other.fetch(file["url"])).status_code == 404
    async with opened(stage.site, "nobody") as nobody:
        assert (await nobody.fetch(file["url"])).status_code == 401


async def test_a_file_that_could_run_is_saved_and_never_shown(stage, page):
    upload = await stage.upload("x.svg", b"<svg onload=alert(1)>", "image/svg+xml")
    await page.say("", files=(upload,))
    await page.until(lambda: page.said("bot"))
    (file,) = next(iter(page.rows.values()))["attachments"]
    answer = await page.fetch(file["url"])
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "application/octet-stream"


async def test_uploads_are_bounded_in_size_and_number_and_belong_to_who_brought_them(stage, page):
    upload = await stage.upload("mine.txt", b"mine")
    too_large = await stage.send("/chat/uploads?name=a", content=b"x" * 1_001)

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 500

    streamed = await stage.send("/chat/uploads?name=a", content=chunks())
    empty = await stage.send("/chat/uploads?name=a", content=b"")
    foreign = await stage.send(
        "/chat/uploads?name=a", content=b"x", headers={"Origin": "https://evil.example"}
    )
    nobody = await stage.send("/chat/uploads?name=a", "nobody", content=b"x")
    statuses = [one.status_code for one in (too_large, streamed, empty, foreign, nobody)]
    assert statuses == [413, 413, 422, 401, 401]
    for _ in range(9):
        await stage.upload("more", b"more")
    assert (await stage.send("/chat/uploads?name=a", content=b"x")).status_code == 429
    stage.access_control.inside.add(EVE.id)
    async with opened(stage.site, EVE.id) as eve:
        await eve.until(lambda: eve.welcome)
        await eve.say("this is mine", files=(upload,))
        await eve.until(lambda: eve.refused)
        assert "attach it again" in eve.refused[0]
    assert list((stage.folder / "uploads").rglob("*.new")) == []


async def test_a_message_with_its_file_is_taken_again_after_a_lost_acceptance(tmp_path):
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as stage:
        upload = await stage.upload("cat.zip", b"PK", "application/zip")
        async with opened(stage.site) as page:
            await page.until(lambda: page.welcome)
            await page.say("look", files=(upload,), message="0123456789")
            await page.until(lambda: page.said("bot"))
    async with program(tmp_path, ScriptedModel()) as stage, opened(stage.site) as page:
        await page.until(lambda: page.welcome)
        await page.say("look", files=(upload,), message="0123456789")
        await page.until(lambda: not page.unsent)
        assert page.refused == []
        assert await stage.lines() == [("person", "look"), ("bot", "ok")]


async def test_a_notice_is_kept_over_a_restart_and_shown_where_it_came(tmp_path):
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as stage:
        async with opened(stage.site) as page:
            await page.until(lambda: page.welcome)
            await talked(page, "first")
        yes = (Button("Yes", "/link yes"),)
        await stage.host.bus.send(Answer(ADA.address, "notice-1", "Is this *you*?", buttons=yes))
        await stage.host.bus.send(Answer(Address("web", "telegram.13"), "notice-2", "for Eve"))
        kept = stage.folder / "notices"
        await stage.host.wait_until(lambda: kept.is_dir() and len(list(kept.glob("*/*.json"))) == 2)
    async with program(tmp_path, ScriptedModel(lambda _: text_reply("ok"))) as stage:
        # A page that nobody had open when it came, and after the answer of before was given again.
        await stage.host.bus.send(Answer(ADA.address, "notice-1", "Is this *you*?", buttons=yes))
        async with opened(stage.site) as page:
            await page.until(lambda: len(page.rows) == 3)
            await talked(page, "second")
            assert [row["author"] for row in page.rows.values()] == [
                "person", "bot", "notice", "person", "bot"
            ]  # fmt: skip
            notice = page.rows["notice-1"]
            assert "<em>you</em>" in notice["html"]
            assert notice["buttons"] == [{"label": "Yes", "command": "/link yes"}]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept.glob("*/*")} == {0o600}
    assert not any("local" in path.name for path in kept.rglob("*"))


async def test_a_file_of_a_notice_is_only_for_its_chat(stage, page, tmp_path):
    (tmp_path / "secret.zip").write_bytes(b"PK")
    files = (OutgoingFile("secret.zip", tmp_path / "secret.zip"),)
    await stage.host.bus.send(Answer(ADA.address, "notice-1", "Here.", files=files))
    await page.until(lambda: page.files)
    ((url, (name, answer)),) = page.files.items()
    assert (name, answer.content) == ("secret.zip", b"PK")
    async with opened(stage.site, EVE.id) as eve:
        assert (await eve.fetch(url)).status_code == 404


async def test_a_full_session_says_so_and_the_message_is_not_shown_as_said(tmp_path):
    held = PausedStep(text_reply("done"))
    async with (
        program(tmp_path, ScriptedModel([held]), limit=1) as stage,
        opened(stage.site) as page,
    ):
        await page.until(lambda: page.welcome)
        await page.say("one")
        await held.entered.wait()
        await page.say("two")
        await page.until(lambda: page.refused)
        assert "already wait here" in page.refused[0]
        await page.say("/stop")
        await page.until(lambda: page.activity == "idle" and page.said("bot"))
        await page.until(lambda: len(page.said("person")) == 2)
        assert page.said("person") == ["one", "/stop"]


async def test_a_pressed_button_takes_the_answers_place_and_is_no_line(stage, page):
    await talked(page, "/memory add I like tea")
    await talked(page, "/memory forget tea")
    listed = list(page.rows.values())[-1]
    before = page.said("person")
    await page.press(listed, "Keep it")
    await page.until(lambda: any(row["replaces"] == listed["id"] for row in page.rows.values()))
    assert page.said("person") == before
    async with opened(stage.site) as other:
        await other.until(lambda: other.rows)
        assert other.said("person") == before


async def test_a_command_given_at_the_desk_is_answered_there_alone(stage, page):
    await talked(page, "hi")
    desk = stage.site.desk
    answer = await desk.run(ADA.address, ADA, "/memory add I like tea", private=True)
    assert "tea" in answer.text
    await stage.host.wait_for_pending(0)
    await talked(page, "hi again")
    assert page.said("person") == ["hi", "hi again"]
    assert await stage.lines() == [
        ("person", "hi"), ("bot", "**Hello** Ada"), ("person", "hi again"), ("bot", "**Hello** Ada")
    ]  # fmt: skip
    async with opened(stage.site) as other:
        await other.until(lambda: len(other.rows) == 4)


async def test_the_desk_works_in_the_conversation_of_another_channel(stage):
    channel = stage.host.channel
    await channel.ask("hello")
    answer = await stage.site.desk.run(Address("fake", "1"), ADA, "/status", private=True)
    await stage.host.wait_for_pending(0)
    assert answer.session == "fake:1"
    assert [one.text for one in channel.answers] == ["**Hello** Ada"]
    receipts = [e.data["turn"] for e in await stage.host.events("delivery")]
    assert receipts.count(answer.id) == 1


async def test_the_desk_takes_commands_alone_and_waits_no_longer_than_it_is_to(tmp_path):
    held = PausedStep(text_reply("done"))
    async with program(tmp_path, ScriptedModel([held])) as stage:
        await stage.host.channel.send("hello")
        await held.entered.wait()
        place, desk = Address("fake", "1"), stage.site.desk
        with pytest.raises(InvalidInbound):
            await desk.run(place, ADA, "remember tea", private=True)
        with pytest.raises(TimeoutError):
            # It waits behind the turn.
            await desk.run(place, replace(ADA), "/new", private=True, within=0.05)
        held.release.set()
        # Nobody waits for its answer any more; it is on the tape and reported.
        await stage.host.wait_for_pending(0)
        assert [one.text for one in stage.host.channel.answers] == ["done"]


async def test_what_is_forgotten_from_elsewhere_leaves_pages_however_far_up_they_were_read(
    stage, page, monkeypatch
):
    monkeypatch.setattr(rooms, "ERASURE_CHECK_SECONDS", 0.05)
    await talked(page, "my cat is called Zephyrine")
    away = Page(stage.site, rows=dict(page.rows), position=page.position, mark=page.mark)
    for number in range(30):
        await talked(page, f"message {number}")
    assert "Zephyrine" in str(page.rows)
    heard = next(e for e in await stage.host.store.read(SESSION) if "Zephyrine" in str(e.payload))
    # Nothing is said here: it was done at another place.
    await stage.host.store.erase(SESSION, [tombstone(heard)])
    await page.until(lambda: page.rows and "Zephyrine" not in str(page.rows))
    # Nor does a page have it that slept meanwhile.
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(away.run)
        await away.until(lambda: away.welcome and "Zephyrine" not in str(away.rows))
        assert len(away.said("person")) >= 25
        tasks.cancel_scope.cancel()


async def test_files_that_come_after_the_words_of_their_answer_are_shown(stage, page):
    reply = event("reply", {"text": "here", "files": [["x.zip", "x.zip"]]}, turn="t-1")
    end = event("turn.end", {"turn": "t-1", "answered": True, "inbound": []})
    await stage.host.store.create_tape(SESSION)
    await stage.host.store.append_many(SESSION, [reply, end])
    await stage.host.bus.send(Activity(ADA.address, "thinking"))
    await page.until(lambda: "t-1" in page.rows)
    assert page.rows["t-1"]["files"] == []
    path = stage.host.services.exports / "x.zip"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"PK")
    files = (OutgoingFile("x.zip", path),)
    await stage.host.bus.send(Answer(ADA.address, "t-1", "here", stream="t-1", files=files))
    await page.until(lambda: page.rows["t-1"]["files"])
    assert [answer.content for _, answer in page.files.values()] == [b"PK"]


async def test_an_answer_with_half_a_character_is_shown_and_the_chat_goes_on(tmp_path):
    model = ScriptedModel([text_reply("half \ud83d of it"), text_reply("and on")])
    async with program(tmp_path, model) as stage, opened(stage.site) as page:
        await page.until(lambda: page.welcome)
        await talked(page, "one")
        await talked(page, "two")
        await stage.host.wait_for_pending(0)
        answers = [row for row in page.rows.values() if row["author"] == "bot"]
        assert "half \ufffd of it" in answers[0]["html"]
    async with program(tmp_path, model) as stage, opened(stage.site) as page:
        await page.until(lambda: len(page.rows) == 4)


async def test_what_is_forgotten_leaves_the_pages_that_are_open(stage, page):
    await talked(page, "my cat is called Zephyrine")
    await talked(page, "/memory add my cat is called Zephyrine")
    async with opened(stage.site) as other:
        await other.until(lambda: len(other.rows) == 4)
        await talked(page, "/memory forget Zephyrine")
        listed = list(page.rows.values())[-1]
        await page.press(listed, listed["buttons"][0]["label"])
        for one in (page, other):
            await one.until(lambda one=one: one.rows and "Zephyrine" not in str(one.rows))


@pytest.mark.parametrize("origin", ["http://[", "https://a]"])
async def test_an_origin_that_is_no_address_is_another_site(stage, origin):
    upload = await stage.send("/chat/uploads?name=a", content=b"x", headers={"Origin": origin})
    assert upload.status_code == 401
    url = f"{stage.site.url}/chat/socket".replace("http", "ws", 1)
    headers = {"Authorization": f"Bearer {ADA.id}", "Origin": origin}
    async with joined(url, additional_headers=headers) as socket:
        assert await closed(socket) == WRONG_ORIGIN


async def test_a_press_brings_no_control_characters_to_the_tape(stage, page):
    press = {"type": "press", "id": str(uuid4()), "command": "/help\x00", "message": "a\x00\x1bb"}
    await page.send(press)
    await page.until(lambda: page.said("bot"))
    tape = repr([(one.payload, one.meta) for one in await stage.host.store.read(SESSION)])
    assert "\\x00" not in tape
    assert "\\x1b" not in tape


async def test_a_page_that_asks_for_very_long_lines_and_takes_none_is_closed():
    tab = PageQueue()
    tab.put("x" * (2 * MAX_QUEUED_CHARACTERS))
    assert not tab.overflowed.is_set()
    tab.put("one more")
    assert tab.overflowed.is_set()
    assert len(await tab.get()) == 2 * MAX_QUEUED_CHARACTERS
    tab.put("and more")
    assert await tab.get() == "and more"


def app_of(stage: Stage) -> FastAPI:
    """Return the chat's routes, for whoever is a server and a page at once."""
    notices, saying = NoticeStore(stage.folder), cast("Any", None)
    lobby = ConnectionContext(
        stage.site, ConversationRegistry(stage.site, notices), saying, (), 1_000
    )
    app = FastAPI()
    uploads = UploadStore(stage.folder, 1_000)
    app.include_router(ChatRoutes(stage.site, SocketServer(lobby), uploads, notices).router())
    return app


async def test_of_attachments_that_nobody_takes_a_few_are_held_and_those_of_others_are_sent(
    stage, page
):
    upload = await stage.upload("a.png", b"x")
    await page.say("look", files=(upload,))
    await page.until(lambda: page.said("bot"))
    heard = next(row for row in page.rows.values() if row["attachments"])
    data = b"x" * (3 * CHUNK_BYTES)
    stage.site.blobs["a.png"] = data
    app = app_of(stage)
    held, sent, taken = list[int](), list[int](), anyio.Event()

    async def fetch() -> None:
        path, _, query = heard["attachments"][0]["url"].partition("?")
        size = 0

        async def receive() -> Any:
            await anyio.sleep_forever()

        async def send(message: Any) -> None:
            nonlocal size
            if message["type"] == "http.response.body":
                assert len(message["body"]) <= CHUNK_BYTES
                size += len(message["body"])
                if size == CHUNK_BYTES:
                    held.append(1)
                    await taken.wait()

        scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(),
                 "headers": [(b"authorization", f"Bearer {ADA.id}".encode())]}  # fmt: skip
        await app(scope, receive, send)
        sent.append(size)

    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_CONCURRENT_DOWNLOADS + 3):
            tasks.start_soon(fetch)
        await stage.host.wait_until(lambda: len(held) >= MAX_CONCURRENT_DOWNLOADS)
        assert len(held) == MAX_CONCURRENT_DOWNLOADS
        taken.set()
    assert sent == [len(data)] * (MAX_CONCURRENT_DOWNLOADS + 3)


async def test_who_takes_no_attachment_of_many_keeps_only_their_own_waiting():
    slots, sent, taken = UserSlots(), list[str](), anyio.Event()

    async def attachment(visitor: str) -> None:
        async with slots.acquire(visitor):
            sent.append(visitor)
            await taken.wait()

    async with anyio.create_task_group() as tasks:
        for _ in range(MAX_CONCURRENT_DOWNLOADS + 3):
            tasks.start_soon(attachment, "slow")
        tasks.start_soon(attachment, "other")
        await anyio.wait_all_tasks_blocked()
        assert sorted(sent) == ["other", *["slow"] * MAX_CONCURRENT_DOWNLOADS]
        taken.set()
    assert sent.count("slow") == MAX_CONCURRENT_DOWNLOADS + 3


async def test_a_page_that_says_nonsense_without_a_pause_leaves_others_theirs_and_is_closed(stage):
    received, codes = 0, list[int]()

    async def receive() -> Any:
        nonlocal received
        received += 1
        assert received < 10_000
        kind = "websocket.connect" if received == 1 else "websocket.receive"
        return {"type": kind, "text": "nonsense"}

    async def send(message: Any) -> None:
        if message["type"] == "websocket.close":
            codes.append(message["code"])
        elif message["type"] == "websocket.send":
            await anyio.sleep_forever()

    scope = {"type": "websocket", "path": "/chat/socket", "query_string": b"", "subprotocols": [],
             "headers": [(b"authorization", f"Bearer {ADA.id}".encode())]}  # fmt: skip
    await app_of(stage)(scope, receive, send)
    assert codes == [TOO_SLOW]
