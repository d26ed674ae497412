"""Fixtures that the tests of the door may use."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["file", pytest.param("postgres", marks=pytest.mark.slow)])
def home(request, tmp_path):
    return tmp_path if request.param == "file" else request.getfixturevalue("url")
