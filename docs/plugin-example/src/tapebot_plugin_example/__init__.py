"""An example of a plug-in: dice, a model that repeats what it is told, and a channel over TCP."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from channels.base import Channel, ChannelContext, ChannelSpec


def tcp_channels() -> Iterator[ChannelSpec]:
    """Yield the channel, if a variable says where it listens."""
    if listen := os.environ.get("EXAMPLE_TCP_LISTEN"):
        yield ChannelSpec("tcp", partial(_create, listen))


def _create(listen: str, context: ChannelContext) -> Channel:
    # A platform's library is imported here, where the channel is created.
    from tapebot_plugin_example.tcp_channel import TcpChannel

    return TcpChannel(context, listen)
