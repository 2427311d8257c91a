"""The code blocks of the documentation, in order, and what stands hidden before them.

A page may prepare what its blocks take for granted (data, files, a model) in a comment that readers
do not see: ``<!-- setup: ... -->`` with Python code inside. The README keeps its own in a file. A
block of text under ``<!-- prints -->`` is what the block before it prints.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_BLOCK = re.compile(
    r"^<!-- setup:\n(?P<setup>.*?)^-->$"
    r"|(?P<prints>^<!-- prints -->\n)?"
    r"^(?P<indent> *)```(?P<language>[\w+-]*)[^\n]*\n(?P<code>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """``language``: as the fence names it, "setup" for hidden code; ``line``: of its first line;
    ``is_output``: whether it shows what the block before it prints."""

    language: str
    code: str
    line: int
    is_output: bool = False


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        group = "setup" if match["setup"] is not None else "code"
        indent = len(match["indent"] or "")
        code = "".join(line[indent:] for line in match[group].splitlines(keepends=True))
        line = text.count("\n", 0, match.start(group)) + 1
        yield Block(match["language"] or "setup", code, line, match["prints"] is not None)


def shell_lines(code: str) -> list[str]:
    """The commands of a shell block, each on one line, without comments."""
    joined = code.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and line[0] != "#"]
