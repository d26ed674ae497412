"""Fixtures that the tests of the door may use."""

from __future__ import annotations

import pytest
from databases import drop, fresh_database


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.slow)])
def home(request, tmp_path):
    if request.param == "file":
        yield tmp_path
        return
    url = fresh_database()
    yield url
    drop(url)
