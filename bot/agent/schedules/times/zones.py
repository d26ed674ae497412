"""Find the names of time zones in a text: "17:00 UTC", "8am PST", "17 Uhr MEZ", "9:00 Europe/Paris". Pure.

Rule 1: an abbreviation is the offset that it says, also on a day on which the clocks there show another one.
Rule 2: what is surely a zone, but not surely which, as "New York time", is a zone of its own kind: whoever reads a time beside
        it must refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import available_timezones

from bot.core.patterns import LazyPattern
from bot.memory.records.schedules import find_zone

_HOURS = dict(
    one.split("=")
    for one in (
        "utc=0 gmt=0 z=0 zulu=0 wet=0 west=1 cet=1 mez=1 cest=2 mesz=2 eet=2 oez=2 eest=3 oesz=3 msk=3 мск=3 trt=3 pkt=5 wib=7 ict=7"
        " hkt=8 sgt=8 awst=8 jst=9 kst=9 aest=10 aedt=11 nzst=12 nzdt=13 brt=-3 edt=-4 est=-5 cdt=-5 mdt=-6 mst=-7"
        " pdt=-7 pst=-8 akdt=-8 akst=-9 hst=-10"
    ).split()
)
_REGIONS = {"E": "New_York", "C": "Chicago", "M": "Denver", "P": "Los_Angeles"}
_NAMED = LazyPattern(
    r"[ ,]{0,3}[(\[（]?(?:in )?(?:"
    r"(?:(?<=\d)|(?<=\d )|\b(?:UTC|GMT|utc|gmt) ?)"
    r"(?P<sign>\+|(?<=[TC])[-−]|(?<=[TC] )[-−]|(?<=[tc])[-−])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?(?!\d)"
    r"|\b(?P<iana>(?:A(?:frica|merica|ntarctica|rctic|sia|tlantic|ustralia)|Canada|Etc|Europe|Indian|Pacific|US)/[A-Za-z_+-]{1,40}(?:/[A-Za-z_]{1,40})?(?:[+-]\d{1,2})?)"
    # What begins with these letters else is a thing: a CT scan, a central station.
    r"|\b(?P<region>(?:Eastern|Central|Mountain|Pacific) [Tt]ime\b|ET\b|Eastern\b(?! [A-Z])|(?:[CMP]T|Central|Mountain|Pacific)(?=[)\]]?(?:$|[,.;:!?]| (?:to|that|for|on|every|today|tomorrow)\b)))"
    r"|\b(?P<place>(?!(?:[ap]m|[Uu]hr|clock) )[A-Za-z]{1,20}(?: [A-Za-z]{1,20}){0,2}) (?:[Tt]ime|[Zz]eit)\b"
    r"|(?:\b|(?<=\d))(?P<short>[A-Z]{1,4}|[a-z]{3,4}|Zulu|МСК|мск)\b"
    r")[)\]）]?"
)


@dataclass(frozen=True, slots=True)
class NamedZone:
    """A zone that a text names."""

    text: str
    start: int  # where it begins in the text, with what leads to it
    end: int
    zone: tzinfo | None = None  # None if it is not sure which it is
    name: str = ""  # the IANA name, if it has one


def named_zones(text: str) -> Iterator[NamedZone]:
    """Yield the zones that a text names."""
    for hit in _NAMED.finditer(text):
        zone, name, sure = None, "", True
        if hit["hours"]:
            minutes = int(hit["hours"]) * 60 + int(hit["minutes"] or 0)
            zone, name = _offset(minutes if hit["sign"] == "+" else -minutes)
        elif (word := hit["short"]) and (hours := _HOURS.get(word.lower())):
            sure = word.isupper() or word not in ("west", "z")
            zone, name = _offset(int(hours) * 60)
        elif word:  # others of this form are no zone, or the name of several: IST, BST, CST
            sure = word.isupper() and len(word) > 2 and word[-2:] in ("ST", "DT")
        elif place := hit["place"]:
            sure = place.split()[-1][0].isupper() or f" {place.lower()}".endswith(_cities())
        else:
            name = hit["iana"] or f"America/{_REGIONS[hit['region'][0]]}"
            zone = find_zone(name)
            name = name if zone else ""
        if sure:
            yield NamedZone(hit[0].strip(" ,()[]（）"), hit.start(), hit.end(), zone, name)


def _offset(minutes: int) -> tuple[tzinfo | None, str]:
    if abs(minutes) > 14 * 60:
        return None, ""
    hours, rest = divmod(minutes, 60)
    name = "" if rest else f"Etc/GMT{-hours:+}" if hours else "UTC"
    return timezone(timedelta(minutes=minutes)), name


@cache
def _cities() -> tuple[str, ...]:
    names = {one.rpartition("/")[2].replace("_", " ").lower() for one in available_timezones()}
    return tuple(f" {one}{ending}" for one in names for ending in ("", "er"))
