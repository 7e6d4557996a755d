"""`make screenshots`: PNGs of every kind of page in both themes, wide and as a phone shows it, into build/screenshots."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.fakes.pages.browser import PROGRAM, THEMES, WIDTHS, open_browser
from tests.fakes.pages.samples import SAMPLES

FOLDER = Path("build/screenshots")


def main() -> int:
    if PROGRAM is None:
        print("Chromium is not installed: apt-get install chromium", file=sys.stderr)
        return 1
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open_browser() as browser:
        for name, write in SAMPLES.items():
            page = FOLDER / f"{name}.html"
            page.write_bytes(write())
            for theme in THEMES:
                for shape, width in WIDTHS.items():
                    browser.open(page, theme=theme, width=width)
                    browser.photograph(FOLDER / f"{name}-{theme}-{shape}.png")
    print(f"{len(SAMPLES)} pages, {len(list(FOLDER.glob('*.png')))} screenshots: {FOLDER}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
