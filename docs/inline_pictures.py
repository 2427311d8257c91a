"""A hook of mkdocs: SVG pictures become part of the page, so that they follow its theme."""

import posixpath
import re
from pathlib import Path
from typing import Any

_IMAGE = re.compile(r'<img alt="(?P<alt>[^"]*)" src="(?P<src>[^":]+\.svg)"[^>]*/?>')


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    folder = Path(config["docs_dir"])

    def inline(match: re.Match[str]) -> str:
        # Addresses in a finished page are relative to its URL, a folder of its own.
        path = posixpath.normpath(posixpath.join(page.url, match["src"]))
        svg = (folder / path).read_text(encoding="utf-8")
        return f'<figure class="picture">{svg}</figure>'

    return _IMAGE.sub(inline, html)
