"""The names of text encodings on the web, as browsers read them (https://encoding.spec.whatwg.org/#names-and-labels).

Rule 1: a name stands for what browsers take it for, which is often a larger encoding than it says.
Rule 2: no other codec of Python's is one of texts; some take long on hostile bytes.
"""

from __future__ import annotations

import codecs
from functools import cache

_CODECS = frozenset(
    """
big5hkscs cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 cp866 cp874 cp932 cp949
euc_jp gb18030 iso2022_jp iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16 iso8859-2
iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 koi8-r koi8-u mac-cyrillic mac-roman
utf-16-be utf-16-le utf-8
""".split()
)

# Each codec, and the names for it that Python does not know or takes for another one; for programs.
_NAMES = """
utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8; iso8859-2: iso88592;
iso8859-3: iso88593; iso8859-4: iso88594; iso8859-5: iso88595; iso8859-6: csiso88596e csiso88596i
iso-8859-6-e iso-8859-6-i iso88596; iso8859-7: iso88597 sun_eu_greek; iso8859-8: csiso88598e
iso-8859-8-e iso88598 visual csiso88598i iso-8859-8-i logical; iso8859-10: iso885910; iso8859-13:
iso885913; iso8859-14: iso885914; iso8859-15: csisolatin9 iso885915; koi8-r: koi koi8; mac-roman:
csmacintosh mac x-mac-roman; cp874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874;
cp1250: x-cp1250; cp1251: x-cp1251; cp1252: ansi_x3.4-1968 ascii cp819 csisolatin1 ibm819
iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252;
cp1253: x-cp1253; cp1254: csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9
iso_8859-9:1989 l5 latin5 x-cp1254; cp1255: x-cp1255; cp1256: x-cp1256; cp1257: x-cp1257; cp1258:
x-cp1258; mac-cyrillic: x-mac-cyrillic x-mac-ukrainian; gb18030: chinese csgb2312 csiso58gb231280
gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk; big5hkscs: big5 cn-big5 csbig5 x-x-big5; euc_jp:
cseucpkdfmtjapanese x-euc-jp; cp932: csshiftjis shift-jis shift_jis sjis windows-31j x-sjis;
cp949: cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601
ksc_5601 windows-949; utf-16-le: utf-16 ucs-2 unicode unicodefeff iso-10646-ucs-2 csunicode;
utf-16-be: unicodefffe;
"""


def web_codec(name: str) -> str | None:
    """Return Python's codec for an encoding's name on the web; None if there is none."""
    label = name.strip().lower()
    try:
        found = _names().get(label) or codecs.lookup(label).name
    except (LookupError, ValueError):
        return None
    return found if found in _CODECS else None


@cache
def _names() -> dict[str, str]:
    found = {}
    for line in _NAMES.split(";"):
        codec, *names = line.split() or [""]
        found.update(dict.fromkeys(names, codec.rstrip(":")))
    return found
