"""The page at `/`: one file without outside resources, which may run no script and no style but its own."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from importlib.resources import files

from podium.core.pages import base_style

PAGE = files("podium.serving.page").joinpath("page.html").read_bytes().replace(b"/* base */\n", base_style().encode())


def _hash_of(element: bytes) -> str:
    """What a browser is told of the one inline element of this kind, so that it runs no other."""
    found = re.findall(rb"<%s>(.*?)</%s>" % (element, element), PAGE, re.DOTALL)
    assert len(found) == 1
    return f"'sha256-{b64encode(hashlib.sha256(found[0]).digest()).decode()}'"


PAGE_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src {_hash_of(b'script')}; style-src {_hash_of(b'style')}; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
