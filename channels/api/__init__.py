"""The channel of client programs: tapebot as a model behind OpenAI's API, on the site's server."""

from channels.api.channel import ApiChannel
from channels.api.routes import ApiRoutes

__all__ = [
    "ApiChannel",
    "ApiRoutes",
]
