"""Hooks of mkdocs: the page of results, pictures that follow the theme, pages without a network."""

import importlib
import posixpath
import re
import runpy
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

_IMAGE = re.compile(r'<img alt="[^"]*" src="(?P<src>[^":]+\.svg)"[^>]*/?>')
_CDN = re.compile(r"https://unpkg\.com/[^\"'`]+")


_ROOT = Path(__file__).resolve().parents[1]
_RESULTS = _ROOT / "experiments" / "results"
_NAMES = re.compile(r"<!-- names: ([\w.]+) -->")
# What scripts write, from figures in JSON or from the program: the comment on a page, the script,
# its function.
_FIGURES = {
    "commands": ("docs/commands.py", "table"),
    "json forms": ("docs/forms.py", "table"),
    "false promises": ("docs/edges.py", "promises"),
    "silent differences": ("docs/edges.py", "differences"),
    "edited certificates": ("docs/edges.py", "verify"),
    "durability": ("benchmarks/durability.py", "table"),
    "load": ("docs/load.py", "times"),
    "bounded surrogates": ("docs/load.py", "quality"),
    "optimism": ("docs/searches.py", "optimism"),
    "optimism by task": ("docs/searches.py", "optimism_by_task"),
    "settling": ("docs/searches.py", "settling"),
    "throughput": ("docs/searches.py", "throughput"),
    "tried": ("experiments/tuning/shown.py", "tried"),
    "shares": ("experiments/tuning/shown.py", "shares"),
    "bets": ("experiments/tuning/shown.py", "bets"),
}


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """The page of experiments is the one that the replay wrote, with its figures."""
    text = (_RESULTS / "README.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "experiments.md", content=text))
    for figure in sorted((_RESULTS / "figures").iterdir()):
        name = f"figures/{figure.name}"
        files.append(File.generated(config, name, abs_src_path=str(figure)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put in what scripts write, and the reference of every name that a module exports."""
    for name, (script, function) in _FIGURES.items():
        mark = f"<!-- figures: {name} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, runpy.run_path(str(_ROOT / script))[function]())
    return _NAMES.sub(_names, markdown)


def _names(match: re.Match[str]) -> str:
    exported = importlib.import_module(match[1]).__all__
    return "\n".join(f"::: {match[1]}.{name}" for name in exported)


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """SVG pictures become part of the page, so that its colours reach them."""
    docs = Path(config["docs_dir"])
    folder = posixpath.dirname(page.url)

    def inline(match: re.Match[str]) -> str:
        path = docs / posixpath.normpath(posixpath.join(folder, match["src"]))
        return f'<figure class="picture">{path.read_text(encoding="utf-8")}</figure>'

    return _IMAGE.sub(inline, html)


def on_post_build(config: Any, **_: Any) -> None:
    """Take out addresses that the theme's script knows for features that no page uses; check."""
    for script in Path(config["site_dir"], "assets", "javascripts").glob("*.js"):
        text = script.read_text(encoding="utf-8")
        if _CDN.search(text):
            script.write_text(_CDN.sub("data:text/javascript,", text), encoding="utf-8")
    check = runpy.run_path(str(Path(__file__).with_name("check_site.py")))
    found = list(check["problems"](Path(config["site_dir"])))
    if found:
        raise PluginError("\n".join(found))
