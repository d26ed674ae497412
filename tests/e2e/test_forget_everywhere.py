"""What a person has forgotten is in no byte below the data folder, and everything else goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest
from folded import fold_entries
from forget_home import AUNT, CAT, CHAT, FILE, PERSON, SHIP, TOWN, converse, home, work
from forget_traces import erase, traces, until_clean

from bot.bus.media.blobs import FolderBlobs
from bot.tape.service import TapeService
from bot.tape.stores.folder_verification import verify_folder
from bot.testing.host import HostLimits
from bot.testing.scripted_model import PausedStep, ScriptedModel, text_reply, tool_call_reply
from bot.transfer.backup_key import signer_of, signing_key
from bot.transfer.erased_list import ERASED_LIST, copy_list, erase_again


@pytest.mark.slow
async def test_what_is_forgotten_by_number_and_by_words_is_in_no_file(tmp_path: Path) -> None:
    async with home(tmp_path) as host:
        blob = await converse(host, tmp_path)
        everywhere = {word for _, word in traces(tmp_path, [CAT, AUNT, FILE, TOWN])}
        assert everywhere == {CAT, AUNT, FILE, TOWN}
        before = {entry.id: entry for entry in await host.tape()}

        town = next(
            fact.id
            for fact in fold_entries(await host.store.read("person:fake:7")).active()
            if TOWN in fact.text
        )
        assert "1 fact" in await erase(host, str(town))
        assert "Forgotten" in await erase(host, CAT)
        assert "Forgotten" in await erase(host, f'"{AUNT}"')
        await until_clean(host, tmp_path, [CAT, AUNT, FILE, TOWN])
        assert await FolderBlobs(tmp_path / "blobs").get(blob) is None

        # All else is there, and the conversation goes on.
        after = {entry.id: entry for entry in await host.tape()}
        for number, entry in before.items():
            assert after[number].kind == entry.kind
            assert after[number].meta.get("ts") == entry.meta.get("ts")
        rain = [e for e in after.values() if e.payload.get("content") == "It rains today."]
        assert len(rain) == 1
        await host.channel.ask("look up rains")
        results = [e.payload["content"] for e in await host.tape() if e.kind == "tool_result"]
        assert "It rains today." in results[-1]
        assert "0 facts" in await host.channel.ask("/memory")
    report = verify_folder(tmp_path / "tapes", "")
    assert not report.problems
    async with home(tmp_path) as host:
        answers = []
        for text in ("Good morning", "remember: my dog is called Rex", "/memory"):
            sent = await host.channel.send(text, message_id=f"later {text}")
            answers.append(await host.channel.wait_for_answer(sent))
        assert "You said" in answers[0]
        assert "dog is called Rex" in answers[2]
        await until_clean(host, tmp_path, [CAT, AUNT, FILE, TOWN])


@pytest.mark.slow
async def test_what_the_memory_bus_holds_of_it_is_in_no_file_and_the_rest_is_as_it_was(
    tmp_path: Path,
) -> None:
    await work(tmp_path)
    where = {name for name, _ in traces(tmp_path, [SHIP])}
    assert any(name.endswith(".gz!") for name in where)
    assert any("index" in name for name in where)
    async with home(tmp_path) as host:

        async def say(text: str, number: int) -> str:
            sent = await host.channel.send(text, message_id=f"say-{number}")
            return await host.channel.wait_for_answer(sent, within=20)

        question = await say(f"/memory forget {SHIP}", 1)
        assert ". 4 shared values, 2 beliefs, a problem's notes\n" in question
        told = await say(host.channel.answers[-1].buttons[0].command, 2)
        assert ", 4 shared values, 2 beliefs, a problem's notes and" in told
        await until_clean(host, tmp_path, [SHIP])
        mine = fold_entries(await host.tape(PERSON)).compartments
        assert mine.references["ferry"].value == "The other one"
        assert [(one.id, one.text, one.status) for one in mine.patterns.values()] == [
            ("p1", "", "retired"),
            ("p2", "", "retired"),
            ("p3", "Buy two.", "active"),
        ]
        assert len(mine.patterns["p3"].evidence_ids) == 1
        # What runs goes on with what is left, and a reopened tape says the same.
        assert "The other one" in await say("/reference ferry", 3)
        listed = await say("/problem", 4)
        assert "[erased] p1" in listed.replace("\\", "")
        await say("/problem switch p1", 5)
        assert "how long?" in await say("/problem show", 6)
        chat = fold_entries(await host.tape(CHAT)).compartments
        await until_clean(host, tmp_path, [SHIP])
    async with home(tmp_path) as host:
        assert fold_entries(await host.tape(CHAT)).compartments == chat
        assert "how long?" in await host.channel.wait_for_answer(
            await host.channel.send("/problem show", message_id="later")
        )
        await until_clean(host, tmp_path, [SHIP])
    assert not verify_folder(tmp_path / "tapes", "").problems


async def test_a_fork_of_the_session_forgets_too(tmp_path: Path) -> None:
    async with home(tmp_path) as host:
        await host.channel.ask(f"remember: my cat is called {CAT}")
        await TapeService(host.store, "fake:1").fork_session("fake:child")
        assert CAT in str(await host.tape("fake:child"))
        assert "Forgotten" in await erase(host, "1")
        await until_clean(host, tmp_path, [CAT])


async def test_a_consolidation_that_runs_does_not_bring_back_what_was_erased(
    tmp_path: Path,
) -> None:
    told = {"history_entry": f"[2026-02-10 10:00] {CAT} was spoken of.", "changes": []}
    held = PausedStep(tool_call_reply(("save_memory", told)))
    clean = {"history_entry": "[2026-02-10 10:00] Greetings.", "changes": []}
    steps = [held, *(tool_call_reply(("save_memory", clean)) for _ in range(5))]
    model = ScriptedModel(lambda _: text_reply("Fine."), consolidation=steps)
    async with home(tmp_path, model, HostLimits(window=4)) as host:
        await host.channel.ask(f"My cat is {CAT}")
        await host.channel.ask("Good morning")
        with anyio.fail_after(30):
            await held.entered.wait()
        assert "Forgotten" in await erase(host, CAT)
        held.release.set()
        await host.channel.ask("Good night")
        await host.wait_for_event("memory.history")
        await until_clean(host, tmp_path, [CAT])


async def test_a_line_goes_from_other_files_though_each_of_its_words_is_said_elsewhere(
    tmp_path: Path,
) -> None:
    typed = tmp_path / "console" / "history"
    typed.parent.mkdir()
    line = "remember: the green key opens the shed"
    typed.write_text(f"\n# 2026-02-10 10:00:00\n+{line}\n\n# 2026-02-10 10:01:00\n+hello\n")
    async with home(tmp_path) as host:
        await host.channel.ask(line)
        await host.channel.ask("Is the key green? Who opens it? Remember that shed.")
        await host.channel.ask("/memory export")
        assert len(traces(tmp_path, ["the green key opens the shed"])) > 3
        assert "1 fact" in await erase(host, "1")
        await until_clean(host, tmp_path, ["the green key opens the shed"])
    assert "+hello" in typed.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "words"),
    [("2", [TOWN]), (CAT, [CAT]), (f'"{AUNT}"', [AUNT, FILE]), (SHIP, [SHIP])],
)
async def test_a_home_of_before_that_is_restored_loses_what_was_erased_since(
    tmp_path: Path, what: str, words: list[str]
) -> None:
    folder, before = tmp_path / "home", tmp_path / "before"
    folder.mkdir()
    if what == SHIP:
        await work(folder)
    else:
        async with home(folder) as host:
            await converse(host, folder)
    signer = signer_of(signing_key(folder))
    shutil.copytree(folder, before)
    async with home(folder) as host:
        asked = await host.channel.send(f"/memory forget {what}", message_id="asked")
        await host.channel.wait_for_answer(asked)
        command = host.channel.answers[-1].buttons[0].command
        done = await host.channel.send(command, message_id="yes")
        assert "Forgotten" in await host.channel.wait_for_answer(done, within=20)
        left = [fact.gloss for fact in fold_entries(await host.tape(PERSON)).active()]
    listed = (folder / ERASED_LIST).read_text()
    assert not any(word.lower() in listed.lower() for word in (*words, CHAT, PERSON))

    copy_list(folder / ERASED_LIST, before / ERASED_LIST)
    assert {word for _, word in traces(before / "tapes", words)}
    assert await erase_again(before, signer) > 3
    for index in (before / "tapes").glob("*.index.db*"):
        shutil.rmtree(index) if index.is_dir() else index.unlink()  # no backup holds them
    assert traces(before, words) == []
    assert not verify_folder(before / "tapes", "").problems
    async with home(before) as host:
        assert [fact.gloss for fact in fold_entries(await host.tape(PERSON)).active()] == left
        sent = await host.channel.send("Good morning", message_id="later")
        assert await host.channel.wait_for_answer(sent)
        assert await erase_again(folder, "ed25519:other") == 0
