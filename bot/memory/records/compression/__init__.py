"""Compact text notation in which a model reads the compartments.

A list begins with a header that names the columns, and states the year, the tapes, and the most
common values once. A line omits what the header states, and fields that have the record's default::

    patterns (id: c | conf t | ev) | year 2026 | type fact | tape telegram:7
    17: The user lives in Rome. | .9 02-10T10:14 | ev 12 15

``encode_*`` is lossless: ``decode_*`` returns the same records, whatever their values contain, so
no value can pass for another field or record. ``render_*`` chooses what to show if not all fits,
and says how much is left out. The caller must escape the prompt's own tags.
"""

from bot.memory.records.compression.context_packet import render_context_packet
from bot.memory.records.compression.episodes import (
    decode_episodes,
    encode_episodes,
    render_episodes,
)
from bot.memory.records.compression.patterns import (
    decode_patterns,
    encode_patterns,
    render_patterns,
)
from bot.memory.records.compression.problems import (
    decode_problems,
    encode_problems,
    render_problems,
)
from bot.memory.records.compression.references import (
    decode_references,
    encode_references,
    render_references,
)
from bot.memory.records.compression.working_sets import (
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
    "references",
    "render_context_packet",
    "render_episodes",
    "render_patterns",
    "render_problems",
    "render_references",
]
