"""The one table of the page's method names and the names under which Python registers the same rules."""

from __future__ import annotations

from typing import Final

PAGE_METHODS: Final[dict[str, str]] = {
    "reach-evolved": "phygail",
    "reach": "reach",
    "sidr": "sidr",
    "center-fly": "center-fly",
}
