"""Fail if a built page would load anything from a network: `python docs/offline.py docs/_build/html`."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

LOADS = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "video": "src",
}


class Loads(HTMLParser):
    """Addresses outside of the pages that a browser would fetch by itself; links that a reader clicks are not meant."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADS.get(tag, "")) or ""
        if address.startswith(("http:", "https:", "//")):
            self.outside.append(address)


def main(folder: Path) -> None:
    pages = sorted(folder.rglob("*.html"))
    if not pages:
        sys.exit(f"{folder} holds no pages.")
    found = []
    for page in pages:
        reader = Loads()
        reader.feed(page.read_text(encoding="utf-8"))
        found += [
            f"{page.relative_to(folder)} loads {address}"
            for address in reader.outside
        ]
    styles = [
        s
        for s in folder.rglob("*.css")
        if "url(http"
        in s.read_text(encoding="utf-8").replace("'", "").replace('"', "")
    ]
    found += [
        f"{style.relative_to(folder)} loads from a network" for style in styles
    ]
    if found:
        sys.exit("\n".join(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
