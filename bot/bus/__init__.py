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
    LetGo,
    Outbound,
    OutFile,
    Partial,
    Role,
    Sender,
)
from bot.bus.ports import Bus, ChannelPort, Delivery, SessionInbox
from bot.bus.spool import SharedSpool, Spool
from bot.errors import (
    BusClosed,
    BusError,
    ChannelRefused,
    FileUnavailable,
    InvalidInbound,
    SessionBusy,
    SessionFull,
    SessionLost,
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
    "LetGo",
    "Media",
    "OutFile",
    "Outbound",
    "Partial",
    "Role",
    "Sender",
    "SessionBusy",
    "SessionFull",
    "SessionInbox",
    "SessionLost",
    "SharedSpool",
    "Spool",
    "Verdict",
]
