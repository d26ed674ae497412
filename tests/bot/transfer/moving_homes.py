"""Homes with some of everything, and what they hold, for tests that move them."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.bus import Address, Inbound, Sender
from bot.bus.access.access_list import AccessList, AllowedChat, AllowedPerson, PairingRequest
from bot.bus.access.file_store import FILE
from bot.bus.access.store import encode
from bot.bus.local import LocalBus
from bot.bus.media.blobs import FolderBlobs
from bot.bus.messages import Attachment
from bot.core.files import replace_file
from bot.tape.entries import TapeEntry, anchor, event, message, tool_call, tool_result
from bot.tape.store import TapeStore
from bot.tape.stores.file import FileTapeStore
from bot.transfer.storage import BusState, HomeStorage, TapeMetadata, read_tape_metadata

ODD = 'nul \x00, half \ud83d, other half \ude00, whole 😀, "quotes", back\\slash, ligne\u2028'
SINCE = datetime(2026, 2, 10, 12, tzinfo=UTC)


async def fill(store: TapeStore) -> None:
    """Make tapes of every kind that a store can hold."""
    await store.create_tape("telegram:42", "Ada's talk")
    await store.append_many("telegram:42", [message("user", ODD), message("assistant", "yes")])
    await store.append(
        "telegram:42", tool_call("", [{"id": "1", "name": "look", "arguments": "{"}])
    )
    await store.append("telegram:42", tool_result("1", "look", "x" * 30_000))
    await store.append("telegram:42", event("numbers", {"big": 10**40, "one": 1.0, "zero": -0.0}))
    await store.archive("telegram:42", [message("user", "carried")])
    await store.append("telegram:42", message("user", "sealed next"))
    await store.archive("telegram:42")
    await store.create_anchor("telegram:42", "here", 2, {"why": ODD})
    await store.append("telegram:42", anchor("session/new", {"phase": 2}))
    await store.fork("telegram:42", "telegram:42:branch", from_anchor="here", title="A fork")
    await store.append("telegram:42:branch", message("user", "only here"))
    erased = TapeEntry(3, "message", {"role": "assistant", "content": "[erased]"}, {"erased": True})
    await store.erase("telegram:42", [erased])
    await store.create_tape("discord:9:ü", None)
    await store.archive("discord:9:ü", [message("user", "dropped by the reset")])
    await store.reset("discord:9:ü", [message("user", "after the reset")])
    await store.append_many("discord:9:ü", [message("user", str(n)) for n in range(1_200)])


def inbound(session: str, number: int, **more: Any) -> Inbound:
    """A message as a channel would hand it over."""
    sent = SINCE + timedelta(seconds=number)
    sender = Sender("7", "Ada \ud83d")
    return Inbound(Address.parse(session), str(number), sender, f"{number} {ODD}", sent, **more)


async def fill_home(home: Path) -> None:
    """Make a home in files: tapes, messages that wait, people, files, and updates."""
    store = FileTapeStore(home / "tapes", sync=False)
    try:
        await fill(store)
    finally:
        await store.close()
    bus = LocalBus(home / "bus", max_queued_messages=100)
    port = bus.channel("telegram")
    for number in range(8):
        await port.publish(inbound(f"telegram:{40 + number % 3}", number))
    picture = Attachment("image", "a.png", "image/png", 3, "a" * 64)
    odd = inbound(
        "discord:9:ü",
        8,
        attachments=(picture,),
        edited_message_id="3",
        expects_answer=False,
        quote=ODD,
    )
    await port.publish(odd)
    inbox = await bus.claim()
    for _ in range(2):
        delivery = await inbox.receive()
        await delivery.ack()  # type: ignore[union-attr]  # nothing was reported
    inbox.release()
    await bus.aclose()
    people = (
        AllowedPerson("telegram:7", "owner", "Ada", SINCE),
        AllowedPerson("discord:8", "member", "", SINCE),
    )
    ask = PairingRequest("ABCD2345", "telegram:99", "Eve", Address("telegram", "99"), SINCE, SINCE)
    access_list = AccessList(people, (AllowedChat("telegram:-100", SINCE),), (ask,))
    replace_file(home / FILE, encode(access_list))
    blobs = FolderBlobs(home / "blobs")
    for data in (b"", b"\x00\xff" * 5_000, b"a picture"):
        await blobs.put(data)
    spool = home / "channels" / "telegram" / "spool"
    spool.mkdir(parents=True)
    (spool / "17.json").write_bytes(json.dumps({"update_id": 17, "text": ODD}).encode())


async def held(place: HomeStorage) -> dict[str, Any]:
    """Return all that a place holds, as plain values that can be compared."""
    tapes: dict[str, tuple[TapeMetadata, list[TapeEntry]]] = {}
    for name in await place.tapes.list_tapes():
        tapes[name] = (await read_tape_metadata(place.tapes, name), await place.tapes.read(name))
    blobs = {name: await place.blobs.get(name) async for name in place.blobs.names()}
    waiting: BusState = await place.read_bus_state()
    return {
        "tapes": {
            name: (one, [repr(entry) for entry in all_]) for name, (one, all_) in tapes.items()
        },
        "waiting": waiting,
        "roster": await place.access.peek(),
        "blobs": blobs,
        "updates": await place.read_updates(),
    }
