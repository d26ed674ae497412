"""Names of events that several layers of memory read."""

from __future__ import annotations

HISTORY_EVENT = "memory.history"

REPLY = "reply"
"""Name of the event with an answer that is not an assistant message, such as a command's."""
MODEL_CHOSEN = "model.chosen"
"""Name of the event by which a chat chooses a model preset: ``{preset, by}``; an empty name goes
back to the default."""

CLIENT_INSTRUCTIONS = "client.instructions"
"""Name of the event with a client program's instructions and tools: ``{system, tools, hash}``. Turns of
the client refer to it as long as they do not change."""

COMMAND = "command"
"""Name of the event with a received command, which is not part of the conversation."""

IMPORT_READING = "import.reading"
"""Name of the event that starts or pauses reading a person's imported conversations in a chat:
``{on}``."""

FILE_KEPT = "file.kept"
"""Name of the event that keeps a file; see ``files``."""

FILE_TEXT = "file.text"
"""Name of the event with a section of a file's text."""

FILE_DELETED = "file.deleted"
FILE_RESTORED = "file.restored"
FOLDER_EVENTS = frozenset({FILE_KEPT, FILE_DELETED, FILE_RESTORED})
"""Events that change a folder's list of files."""

FILE_EVENTS = FOLDER_EVENTS | {FILE_TEXT}
