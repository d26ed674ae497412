"""The arguments of the tools of the MCP server. Pure."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LONGEST_QUERY = 400
LONGEST_PROPOSAL = 500
MOST_PASSAGES = 20
MOST_ENTRIES = 50
MAX_ID = 2**53 - 1

Limit = Annotated[int, Field(ge=1, le=MOST_PASSAGES)]


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SearchArguments(_Arguments):
    """Arguments of ``search``."""

    query: str = Field(
        min_length=1, max_length=LONGEST_QUERY, description="Words; a phrase in quotation marks."
    )
    session: str | None = Field(None, max_length=600, description="Only in this session.")
    days: int | None = Field(None, ge=1, le=36_500, description="Only so many days back.")
    limit: Limit = 8


class RecalledWords(_Arguments):
    """Arguments of ``recall``."""

    about: str = Field(
        "", max_length=LONGEST_QUERY, description="A topic or question; empty for what is known."
    )
    limit: Limit = 8


class WhyArguments(_Arguments):
    """Arguments of ``why``."""

    fact: str = Field(pattern=r"^w?[0-9]{1,9}$", description="A fact's number, such as 3 or w3.")


class TimelineArguments(_Arguments):
    """Arguments of ``timeline``."""

    session: str | None = Field(None, max_length=600, description="None: list the sessions.")
    before: int | None = Field(None, ge=1, le=MAX_ID, description="`older` of the page before.")
    limit: int = Field(20, ge=1, le=MOST_ENTRIES)


class ProposeArguments(_Arguments):
    """Arguments of ``propose``."""

    text: str = Field(
        min_length=1,
        max_length=LONGEST_PROPOSAL,
        description="One sentence that is true without its context.",
    )
