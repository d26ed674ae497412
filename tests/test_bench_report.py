"""Figures are shown on pages as they were measured."""

from __future__ import annotations

import pytest

from bench.report import markdown, write_section

PAGE = "before\n<!-- start: begin -->{}<!-- start: end -->\nafter\n"


def test_a_table_replaces_what_a_page_showed_before(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE.format("\nold\n"))
    table = markdown({"head": ["", "us"], "rows": [["start", 1234.5]], "notes": ["quiet"]})
    write_section(page, "start", table)
    write_section(page, "start", table)
    shown = "|  | us |\n| --- | --- |\n| start | 1,234 |\n\n- quiet"
    assert page.read_text() == PAGE.format(f"\n\n{shown}\n\n")


def test_a_page_without_the_place_is_left_as_it_is(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    with pytest.raises(ValueError, match="no marks of peers"):
        write_section(page, "peers", "new")
    assert page.read_text() == PAGE
