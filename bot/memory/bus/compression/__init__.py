"""How a model reads the compartments: each record a line or a few, the same things said once.

A list begins with a header that names the columns, and says the year, the tapes and what most records
share. What a line does not say is as the header says, or the record's default::

    patterns (id: c | conf t | ev) | year 2026 | type fact | tape telegram:7
    17: The user lives in Rome. | .9 02-10T10:14 | ev 12 15

``encode_*`` loses nothing: ``decode_*`` gives the same records back, whatever their values hold, so no
value can stand for another field or record. ``*_text`` and ``working_packet`` choose what is shown where
not all fits, and say how much is not. The prompt's own tags are the caller's to escape.
"""

from bot.memory.bus.compression.context_packet import render_context_packet
from bot.memory.bus.compression.episodes import decode_episodes, encode_episodes, render_episodes
from bot.memory.bus.compression.patterns import decode_patterns, encode_patterns, render_patterns
from bot.memory.bus.compression.problems import decode_problems, encode_problems, render_problems
from bot.memory.bus.compression.references import (
    decode_references,
    encode_references,
    render_references,
)
from bot.memory.bus.compression.working_sets import (
    decode_working,
    decode_working_sets,
    encode_working,
    encode_working_sets,
)

__all__ = [
    "decode_episodes",
    "decode_patterns",
    "decode_problems",
    "decode_references",
    "decode_working",
    "decode_working_sets",
    "encode_episodes",
    "encode_patterns",
    "encode_problems",
    "encode_references",
    "encode_working",
    "encode_working_sets",
    "render_context_packet",
    "render_episodes",
    "render_patterns",
    "render_problems",
    "render_references",
]
