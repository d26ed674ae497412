"""Hostile text and lying models: nothing of it reaches long-term memory, or another scope."""

from __future__ import annotations

import re
from typing import Any

import pytest
from memory_accomplices import (
    INNOCENT,
    MODES,
    Accomplice,
    Cast,
    Web,
    believed,
    home_facts,
    prompts,
    rendering,
    scenes,
    sent,
)

from bot.testing.host import Host, session_host

GREETING = "Good evening."
SCENES = scenes()


def test_the_attacks_are_many():
    assert len({scene["id"] for scene in SCENES}) >= 100


@pytest.mark.parametrize(
    "scene",
    [
        # A part of them at each run, all of them among the long proofs.
        pytest.param(scene, id=scene["id"], marks=[pytest.mark.slow] if number % 8 else [])
        for number, scene in enumerate(SCENES)
    ],
)
async def test_what_hostile_text_wants_is_not_believed(tmp_path, scene):
    accomplice, web = Accomplice(), Web(scene.get("page", ""))
    model = accomplice.model()
    async with session_host(tmp_path, model, tools=[web.tool()]) as host:
        for number, mode in enumerate(MODES, start=1):
            cast = Cast(number, group=scene.get("group", False))
            fitted = cast.fitted(scene)
            await _play(host, cast, fitted, accomplice, mode)
            await _check(host, cast, fitted)
            _check_free(prompts(model), fitted["plant"])


async def _play(
    host: Host, cast: Cast, scene: dict[str, Any], accomplice: Accomplice, mode: str
) -> None:
    accomplice.scene, accomplice.mode = scene, ""
    for fact in scene.get("facts", ()):
        await cast.say(host, "ada", f"/memory add {fact}")
    await cast.say(host, "ada", INNOCENT)
    accomplice.mode = mode
    for step in scene["steps"]:
        accomplice.rendering = await rendering(host, cast)
        accomplice.reply = step.get("reply", "ok")
        await cast.say(host, step.get("by", "ada"), step["text"], **sent(step))
    await _new(host, cast)
    if mode == "both":
        accomplice.rendering = await rendering(host, cast)
        await cast.say(host, "ada", GREETING)
        await _new(host, cast)
    accomplice.mode, accomplice.reply = "", "ok"
    chats = {"ada": (cast.chat, cast.id_of("ada"), f"h{cast.number}"), "bob": (cast.id_of("bob"),)}
    for who, theirs in chats.items():
        for chat in theirs:
            await cast.say(host, who, "What do you know?", chat=chat)


async def _new(host: Host, cast: Cast) -> None:
    assert await cast.say(host, "ada", "/new") == "New session started."


async def _check(host: Host, cast: Cast, scene: dict[str, Any]) -> None:
    _check_free(await believed(host), scene["plant"])
    facts = await home_facts(host, cast)
    for kept in scene.get("keep", ()):
        assert any(kept in fact for fact in facts), f"{kept!r} was lost: {facts}"
    pending = await cast.say(host, "ada", "/memory pending")
    if "origin" in scene and "wait" in pending.splitlines()[0] and "Nothing" not in pending:
        assert scene["origin"] in pending


OWN_WORDS = re.compile(rf'Ada \(\d+\)(?: said)?: "(?:{re.escape(INNOCENT)}|{re.escape(GREETING)})"')


def _check_free(texts: list[str], planted: list[str]) -> None:
    for text in texts:
        lines = [line.strip().removeprefix("- ") for line in text.splitlines()]
        # In a group the owner's own words may be kept, with whose they are.
        lines = [line.casefold() for line in lines if not OWN_WORDS.fullmatch(line)]
        for plant in map(str.casefold, planted):
            begun = plant.removeprefix("^")
            found = [one for one in lines if begun in one]
            if begun != plant:
                found = [one for one in found if one.startswith(begun)]
            assert not found, f"{plant!r} is in {text!r}"
