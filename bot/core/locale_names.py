"""Find time zones and languages by the names that people write: a city, a language in any of ours, in any case."""

from __future__ import annotations

import difflib
import unicodedata
from functools import cache
from importlib import resources
from zoneinfo import available_timezones

from bot.core.i18n import LANGUAGES, match_language

_CLOSE = 0.75


def find_zones(name: str, *, close: bool = False) -> list[str]:
    """Return the zones that a name may mean: by its IANA name, else by its city, which several may have.

    Args:
        name: ``Europe/Berlin``, ``berlin`` or ``New York, USA``.
        close: Look for names that are spelled similarly.
    """
    known, cities = _zones()
    if (found := known.get(name.strip().casefold())) is not None:
        return [found]
    wanted = _folded(name.partition(",")[0])
    if not close:
        zones = cities.get(wanted, set())
        # An old name beside the new one is no choice.
        return sorted(zones & _current_names() or zones)
    near = difflib.get_close_matches(wanted, cities, n=1, cutoff=_CLOSE)
    return sorted(zone for city in near for zone in cities[city])


def find_language(name: str, *, close: bool = False) -> str | None:
    """Return the code of a language of ours by its code, or its name in one of ours; None if it is none."""
    names = _languages()
    wanted = _folded(name)
    if close:
        near = difflib.get_close_matches(wanted, names, n=1, cutoff=_CLOSE)
        return names[near[0]] if near else None
    return match_language([name]) or names.get(wanted)


def _folded(name: str) -> str:
    """Return a name's letters and digits, without case and accents."""
    plain = unicodedata.normalize("NFKD", name[:100].casefold())
    return "".join(one for one in plain if one.isalnum() and not unicodedata.combining(one))


@cache
def _zones() -> tuple[dict[str, str], dict[str, set[str]]]:
    """Return zones by their names in lower case, and by their cities in our languages."""
    from babel import Locale
    from babel.core import get_global

    known = {name.casefold(): name for name in available_timezones()}
    aliases = get_global("zone_aliases")
    cities: dict[str, set[str]] = {}
    for name in known.values():
        # The signs of Etc/GMT+2 say the opposite of what people mean.
        if "/" in name and not name.startswith("Etc/"):
            zone = aliases.get(name, name)
            for place in (name, name.rpartition("/")[2]):
                cities.setdefault(_folded(place), set()).add(zone)
    for language in LANGUAGES:
        for name, told in Locale.parse(language).time_zones.items():
            if name.casefold() in known and not name.startswith("Etc/") and "city" in told:
                cities.setdefault(_folded(told["city"]), set()).add(name)
    return known, cities


@cache
def _current_names() -> set[str]:
    table = resources.files("tzdata.zoneinfo").joinpath("zone.tab").read_text("utf-8")
    return {line.split("\t")[2] for line in table.splitlines() if not line.startswith("#")}


@cache
def _languages() -> dict[str, str]:
    from babel import Locale

    return {
        _folded(name): code
        for code, own in LANGUAGES.items()
        for name in (own, *(str(Locale.parse(one).languages.get(code)) for one in LANGUAGES))
    }
