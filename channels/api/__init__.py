"""The channel of client programs: tapebot as a model behind OpenAI's API, on the site's server."""

from channels.api.channel import ApiChannel

__all__ = [
    "ApiChannel",
]
