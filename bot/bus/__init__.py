"""The message bus between channels and sessions: the only part of ``bot`` that channels see."""

from bot.bus.messages import (
    Accepted,
    Activity,
    Address,
    Answer,
    DeliveryReport,
    Inbound,
    Outbound,
    Partial,
    Sender,
)
from bot.bus.ports import Bus, ChannelPort, Delivery, SessionInbox
from bot.errors import BusClosed, BusError, InvalidInbound, SessionFull

__all__ = [
    "Accepted",
    "Activity",
    "Address",
    "Answer",
    "Bus",
    "BusClosed",
    "BusError",
    "ChannelPort",
    "Delivery",
    "DeliveryReport",
    "Inbound",
    "InvalidInbound",
    "Outbound",
    "Partial",
    "Sender",
    "SessionFull",
    "SessionInbox",
]
