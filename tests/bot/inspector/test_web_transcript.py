"""What a chat shows is what its tape says, however much there is and whatever became of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import anyio
import pytest
from waiting import until

from bot.bus import Address, Attachment, Sender, TranscriptMessage
from bot.inspector.transcript import TapeTranscript
from bot.memory.records.tombstones import ERASED_TEXT, tombstone
from bot.tape.entries import event, message
from bot.testing.host import Host, session_host
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply

SESSION = "fake:1"


@pytest.fixture
async def host(tmp_path) -> AsyncIterator[Host]:
    async with session_host(tmp_path, ScriptedModel(lambda _: text_reply("a **reply**"))) as host:
        yield host


def transcript(host: Host) -> TapeTranscript:
    return TapeTranscript(host.store, host.services.exports)


def told(lines: list[TranscriptMessage]) -> list[tuple[str, str]]:
    return [(line.author, line.text) for line in lines]


async def test_a_conversation_without_a_tape_has_no_lines(host):
    said = transcript(host)
    assert await said.newest("fake:none", 10) == []
    assert await said.since("fake:none", 0) == []
    assert await said.message("fake:none", 1) is None


async def test_messages_commands_and_answers_are_lines_with_who_and_what(host):
    sent = await host.channel.send("hello", sender=Sender("7", "Ada"))
    await host.channel.wait_for_answer(sent)
    await host.channel.ask("/memory add I like tea")
    lines = await transcript(host).newest(SESSION, 10)
    assert told(lines)[:3] == [
        ("person", "hello"), ("bot", "a **reply**"), ("person", "/memory add I like tea")
    ]  # fmt: skip
    assert (lines[0].id, lines[0].name) == (sent.id, "Ada")
    assert lines[1].id == host.channel.answers[0].id
    assert [line.position for line in lines] == sorted(line.position for line in lines)


async def test_a_portion_and_what_follows_it_are_all_there_is_and_nothing_twice(host):
    for number in range(12):
        await host.channel.ask("/status" if number % 3 == 0 else f"message {number}")
    said = transcript(host)
    everything = await said.newest(SESSION, 1_000)
    assert len(everything) == 24
    found: list[TranscriptMessage] = []
    while portion := await said.newest(SESSION, 5, found[0].position if found else None):
        found = [*portion, *found]
    assert found == everything
    for cut, line in enumerate(everything):
        assert await said.since(SESSION, line.position) == everything[cut + 1 :]
        assert await said.message(SESSION, line.position) == line


async def test_lines_read_while_a_turn_runs_never_have_to_be_read_again(tmp_path):
    first, second = (
        PausedStep(tool_call_reply(("memory_recall", {"query": "x"}), text="wait")),
        PausedStep(text_reply("one")),
    )
    model = ScriptedModel([first, second, text_reply("two")])
    async with session_host(tmp_path, model) as host:
        said, seen = transcript(host), list[TranscriptMessage]()

        async def look() -> None:
            seen.extend(await said.since(SESSION, seen[-1].position if seen else 0))

        await host.channel.send("question")
        await first.entered.wait()
        await look()
        await host.channel.send("and another")

        async def both() -> bool:
            return len(await said.newest(SESSION, 10)) >= 2

        await until(both)
        first.release.set()
        await second.entered.wait()
        await look()
        await host.channel.ask("/memory add I like rain")
        await look()
        second.release.set()
        await host.wait_for_pending(0)
        await look()
        assert seen == await said.newest(SESSION, 100)
        authors = [line.author for line in seen]
        assert authors.count("person") == 3
        assert len({line.id for line in seen}) == len(seen)


async def test_a_stopped_turn_is_one_answer_with_what_was_read_so_far(tmp_path):
    held = PausedStep(text_reply("never"), partial="Once upon")
    async with session_host(tmp_path, ScriptedModel([held])) as host:
        await host.channel.send("a story")
        await host.channel.wait_until(lambda: bool(host.channel.partials))
        await host.channel.ask("/stop")
        lines = await transcript(host).newest(SESSION, 10)
        assert [line.author for line in lines] == ["person", "person", "bot"]
        assert lines[2].text.startswith("Once upon …")


async def test_what_was_said_before_a_new_session_is_still_to_be_read(host):
    await host.channel.ask("before")
    await host.channel.ask("/new now")
    await host.channel.ask("after")
    lines = await transcript(host).newest(SESSION, 10)
    people = [line.text for line in lines if line.author == "person"]
    assert people == ["before", "/new now", "after"]


async def test_buttons_and_places_of_answers_are_kept(host):
    await host.channel.ask("/memory add I like tea")
    await host.channel.ask("/memory forget tea")
    asked = (await transcript(host).newest(SESSION, 1))[0]
    assert any(one.label == "Keep it" for one in asked.buttons)
    pressed = await host.channel.send("/memory", pressed="out-2")
    await host.channel.wait_for_answer(pressed)
    lines = await transcript(host).newest(SESSION, 10)
    assert lines[-1].replaces == "out-2"
    # Pressing is no line, also where the portion ends between it and its answer.
    assert pressed.id not in {line.id for line in lines}
    before = await transcript(host).newest(SESSION, 10, lines[-1].position)
    assert pressed.id not in {line.id for line in before}


async def test_files_of_answers_lie_in_the_folder_for_exports_and_nowhere_else(host):
    await host.channel.ask("/memory export")
    (file,) = (await transcript(host).newest(SESSION, 1))[0].files
    assert file.path.parent == host.services.exports
    assert file.path.is_file()
    evil = [["x", "../../../etc/passwd"]]
    await host.store.append_many(
        SESSION,
        [
            event("reply", {"text": "here", "files": evil}, turn="t-evil"),
            event("turn.end", {"turn": "t-evil", "answered": True, "inbound": []}),
        ],
    )
    line = (await transcript(host).newest(SESSION, 1))[0]
    assert [one.path for one in line.files] == [host.services.exports / "passwd"]
    answer = host.channel.answers[-1]
    assert await transcript(host).files(SESSION, answer.id) == (file,)
    assert await transcript(host).files(SESSION, "nothing") == ()


async def test_what_came_with_a_message_is_told(host):
    kept = Attachment("image", "cat.png", "image/png", 3, "0" * 64)
    lost = Attachment("document", "big.pdf", "application/pdf", 9, note="larger than 1 MB")
    await host.channel.wait_for_answer(await host.channel.send("look", attachments=(kept, lost)))
    (line,) = (await transcript(host).newest(SESSION, 10))[:1]
    assert line.attachments == (kept, lost)


async def test_an_edit_takes_the_place_of_its_message(host):
    sent = await host.channel.send("I like tee")
    await host.channel.wait_for_answer(sent)
    await host.channel.send("I like tea", edits=sent.id, message_id="edited")
    await host.wait_for_pending(0)
    line = (await transcript(host).newest(SESSION, 1))[0]
    assert (line.text, line.replaces, line.id) == ("I like tea", sent.id, "edited")


async def test_what_is_erased_is_shown_as_erased(host):
    await host.channel.ask("my secret")
    await host.channel.ask("/memory add my secret")
    lines = await transcript(host).newest(SESSION, 10)
    for line in lines:
        (entry,) = await host.store.read(SESSION, line.position, line.position)
        await host.store.erase(SESSION, [tombstone(entry)])
    after = await transcript(host).newest(SESSION, 10)
    assert [line.text for line in after] == [ERASED_TEXT] * 4
    assert [(line.position, line.id, line.author) for line in after] == [
        (line.position, line.id, line.author) for line in lines
    ]


async def test_commands_from_elsewhere_are_no_lines(host):
    await host.channel.ask("hello")
    via = Address("fake", "desk")
    sent = await host.channel.send("/memory add I like tea", via=via)
    await host.channel.wait_for_answer(sent)
    assert told(await transcript(host).newest(SESSION, 10)) == [
        ("person", "hello"), ("bot", "a **reply**")
    ]  # fmt: skip


async def test_damage_on_a_tape_is_passed_over(host):
    await host.channel.ask("hello")
    await host.store.append_many(
        SESSION,
        [
            event("turn.end", {"turn": 5, "answered": True, "inbound": "no list"}),
            event("turn.end", {"answered": "yes"}),
            event("command", {"name": None}),
            message("user", None),  # type: ignore[arg-type]
            event("reply", {"text": ["no text"], "buttons": "x", "files": {"a": 1}}),
            event("turn.end", {"turn": None, "answered": True}),
        ],
    )
    lines = await transcript(host).newest(SESSION, 10)
    assert told(lines)[:2] == [("person", "hello"), ("bot", "a **reply**")]


async def test_reading_costs_what_is_shown(host):
    turn = [
        message("user", "q", inbound="m"),
        event("turn.start", {"turn": "t"}),
        message("assistant", "a", turn="t"),
        event("turn.end", {"turn": "t", "answered": True, "inbound": ["m"]}),
    ]
    await host.store.create_tape("fake:long")
    for _ in range(10):
        await host.store.append_many("fake:long", turn * 1_000)
    read = 0
    back = host.store.read_back

    async def counted(tape: str, before: int | None = None):
        nonlocal read
        async for entry in back(tape, before):
            read += 1
            yield entry

    host.store.read_back = counted  # type: ignore[method-assign]
    with anyio.fail_after(30):
        assert len(await transcript(host).newest("fake:long", 50)) == 50
        assert len(await transcript(host).newest("fake:long", 50, 20_000)) == 50
    assert read < 500


async def test_a_damaged_command_keeps_no_line_from_being_read(host):
    await host.store.create_tape(SESSION)
    command = event("command", {"name": "help"}, inbound=["m1"])
    await host.store.append_many(
        SESSION, [command, message("user", "hello", inbound="m2", sent="9999-12-31T23:59:59-14:00")]
    )
    lines = await transcript(host).newest(SESSION, 10)
    assert told(lines) == [("person", "/help"), ("person", "hello")]
    assert lines[1].at == ""
