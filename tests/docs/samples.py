"""Make what pages of the docs begin with: ``samples.py NAME [PATH]``."""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from installed_packages import install

NOON = 1_700_000_000.0


def _zip(path: Path, **files: object) -> None:
    with zipfile.ZipFile(path, "w") as made:
        for name, value in files.items():
            made.writestr(f"{name}.json", json.dumps(value))


def chatgpt(path: Path) -> None:
    """Make ChatGPT's export of one conversation, with a line of its memory."""
    said = ("My cat is called Miso.", "A fine name!", "I work at the port of Gdynia.", "Noted.")
    nodes = {"n0": {"id": "n0", "message": None, "parent": None, "children": ["n1"]}}
    for number, text in enumerate(said, start=1):
        nodes[f"n{number}"] = {
            "id": f"n{number}",
            "parent": f"n{number - 1}",
            "children": [f"n{number + 1}"] if number < len(said) else [],
            "message": {
                "id": f"n{number}",
                "author": {"role": "user" if number % 2 else "assistant", "metadata": {}},
                "create_time": NOON + number,
                "content": {"content_type": "text", "parts": [text]},
                "recipient": "all",
                "metadata": {},
            },
        }
    talk = {"id": "aaaa-1", "title": "A cat", "create_time": NOON, "mapping": nodes}
    _zip(path, conversations=[{**talk, "current_node": f"n{len(said)}"}])


def claude(path: Path) -> None:
    said = (("human", "My sister is called Ola."), ("assistant", "Nice to know."))
    at = "2025-03-01T10:00:00Z"
    messages = [
        {"uuid": who, "text": text, "content": [{"type": "text", "text": text}], "sender": who,
         "created_at": at} for who, text in said
    ]  # fmt: skip
    talk = {"uuid": "bbbb-2", "name": "A sister", "created_at": at, "account": {"uuid": "account"}}
    _zip(path, conversations=[{**talk, "chat_messages": messages}])


def openclaw(path: Path) -> None:
    (path / "workspace").mkdir(parents=True)
    (path / "workspace" / "MEMORY.md").write_text("# Memory\n\n- Ada plays the cello.\n")


def nanobot(path: Path) -> None:
    (path / "memory").mkdir(parents=True)
    (path / "memory" / "MEMORY.md").write_text("# Home\n\nAda lives in Gdynia.\n")


def mail(path: Path) -> None:
    """Make a folder for Python's path, with a plug-in whose tool claims to send mails."""
    path.mkdir(parents=True)
    code = """
from pydantic import BaseModel
from bot.agent.tools.registry import Tool, ToolOutcome


class Mail(BaseModel):
    to: str
    text: str


async def send(mail, context):
    return ToolOutcome("It is sent.")


SEND = Tool("mail.send", "Send a mail.", Mail, send, effect="acts", sensitive={"to": "recipient"})
"""
    install(path, "mail-plugin", code, {"tools": {"mail.send": "SEND"}})


def skill(path: Path) -> None:
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(
        "---\nname: tea\ndescription: How to brew tea.\n---\nGreen tea wants 70 degrees and two minutes.\n"
    )


def damage(home: Path) -> None:
    for tape in (home / "tapes").glob("*.jsonl"):
        data = tape.read_bytes()
        if found := re.search(rb"I live in Warsaw", data):
            at = found.start()
            tape.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            return
    raise SystemExit("no tape says that")


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
