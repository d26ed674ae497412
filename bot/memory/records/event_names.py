"""Names of events that several layers of memory read."""

from __future__ import annotations

HISTORY_EVENT = "memory.history"

REPLY = "reply"
"""Name of the event with an answer that is not an assistant message, such as a command's."""
MODEL_CHOSEN = "model.chosen"
"""Name of the event by which a chat chooses a model preset: ``{preset, by}``; an empty name goes
back to the default."""

COMMAND = "command"
"""Name of the event with a received command, which is not part of the conversation."""
