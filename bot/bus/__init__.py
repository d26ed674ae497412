"""The message bus between channels and sessions: the only part of ``bot`` that channels see."""

from bot.bus.access import Access, Knock, Verdict
from bot.bus.media import File, Media
from bot.bus.messages import (
    Accepted,
    Activity,
    Address,
    Answer,
    Attachment,
    Button,
    DeliveryReport,
    Inbound,
    Outbound,
    OutFile,
    Partial,
    Role,
    Sender,
)
from bot.bus.ports import Bus, ChannelPort, Delivery, SessionInbox
from bot.errors import (
    BusClosed,
    BusError,
    ChannelRefused,
    FileUnavailable,
    InvalidInbound,
    SessionFull,
)

__all__ = [
    "Accepted",
    "Access",
    "Activity",
    "Address",
    "Answer",
    "Attachment",
    "Bus",
    "BusClosed",
    "BusError",
    "Button",
    "ChannelPort",
    "ChannelRefused",
    "Delivery",
    "DeliveryReport",
    "File",
    "FileUnavailable",
    "Inbound",
    "InvalidInbound",
    "Knock",
    "Media",
    "OutFile",
    "Outbound",
    "Partial",
    "Role",
    "Sender",
    "SessionFull",
    "SessionInbox",
    "Verdict",
]
