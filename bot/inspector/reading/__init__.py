"""Read the data of pages and API from tapes, at the cost of what is returned."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

__all__ = ["ReadModel", "entry_text"]


class ReadModel(BaseModel):
    """What the API returns and pages show; fields are stated here alone."""

    model_config = ConfigDict(frozen=True)
