"""Hooks of mkdocs: pages of results, pictures and tables that fit their page, nothing fetched."""

import importlib
import posixpath
import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

_IMAGE = re.compile(r'<img alt="[^"]*" src="(?P<src>[^":]+\.(?:svg|png))"[^>]*/?>')
_DRAWING = 'class="rp"'  # of a drawing that takes its colours from the page
_WIDTH = re.compile(r'<svg[^>]* viewBox="0 0 (?P<width>[\d.]+)')
_PANELS = 700  # points: a figure that is as wide has several panels side by side
_CDN = re.compile(r"https://unpkg\.com/[^\"'`]+")


_ROOT = Path(__file__).resolve().parents[1]
_RESULTS = _ROOT / "experiments" / "results"
_PAPER = "https://openreview.net/forum?id=nvmGBcElus"
_NAMES = re.compile(r"<!-- names: ([\w.]+) -->")
# What scripts write, from figures in JSON or from the program: the comment on a page, the script,
# its function.
_FIGURES = {
    "commands": ("docs/commands.py", "table"),
    "json forms": ("docs/forms.py", "table"),
    "false promises": ("docs/edges.py", "promises"),
    "silent differences": ("docs/edges.py", "differences"),
    "edited certificates": ("docs/edges.py", "verify"),
    "compared": ("docs/compared.py", "table"),
    "gallery": ("docs/gallery.py", "gallery"),
    "site": ("docs/site_speed.py", "table"),
    "durability": ("benchmarks/durability.py", "table"),
    "load": ("docs/load.py", "times"),
    "bounded surrogates": ("docs/load.py", "quality"),
    "many workers": ("docs/searches.py", "many_workers"),
    "optimism": ("docs/searches.py", "optimism"),
    "optimism by task": ("docs/searches.py", "optimism_by_task"),
    "settling": ("docs/searches.py", "settling"),
    "races": ("docs/searches.py", "races"),
    "trees": ("docs/searches.py", "trees"),
    "training": ("docs/searches.py", "training"),
    "many parameters": ("docs/searches.py", "many_parameters"),
    "few evaluations": ("docs/searches.py", "few_evaluations"),
    "without a safe start": ("docs/searches.py", "without_safe_start"),
    "narrow regions": ("docs/searches.py", "narrow_regions"),
    "failing regions": ("docs/searches.py", "failing_regions"),
    "known surface": ("docs/searches.py", "known_surface"),
    "earlier studies": ("docs/searches.py", "earlier_studies"),
    "throughput": ("docs/searches.py", "throughput"),
    "tried": ("experiments/tuning/shown.py", "tried"),
    "shares": ("experiments/tuning/shown.py", "shares"),
    "bets": ("experiments/tuning/shown.py", "bets"),
}


def on_config(config: Any, **_: Any) -> Any:
    """Link the paper and the repository at the foot of every page; its address has one place."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    address = project.get("urls", {}).get("Source")
    source = f'<a href="{address}">Source</a>' if address else "Source: not published yet"
    config.copyright = f'<a href="{_PAPER}">The paper</a> · {source} · {project["license"]} licence'
    return config


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """The pages of experiments are those that the replay wrote, with their figures."""
    for path in sorted(_RESULTS.rglob("*")):
        name = f"experiments/{path.relative_to(_RESULTS).as_posix()}"
        if path.suffix in (".md", ".png"):
            files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put in what scripts write, and the reference of every name that a module exports; let the
    pages of the replay, which lie elsewhere in the repository, link to the other pages."""
    markdown = markdown.replace("](../../docs/", "](../")
    for name, (script, function) in _FIGURES.items():
        mark = f"<!-- figures: {name} -->"
        if mark in markdown:
            markdown = markdown.replace(mark, runpy.run_path(str(_ROOT / script))[function]())
    return _NAMES.sub(_names, markdown)


def _names(match: re.Match[str]) -> str:
    exported = importlib.import_module(match[1]).__all__
    return "\n".join(f"::: {match[1]}.{name}" for name in exported)


def on_page_content(html: str, page: Any, config: Any, **_: Any) -> str:
    """Let pages show tables on a phone, screens in full size, and drawings in their colours."""
    html = runpy.run_path(str(_ROOT / "docs" / "phone.py"))["with_labels"](html)
    docs = Path(config["docs_dir"])
    folder = posixpath.dirname(page.url)

    def shown(match: re.Match[str]) -> str:
        path = docs / posixpath.normpath(posixpath.join(folder, match["src"]))
        text = path.read_text(encoding="utf-8") if path.suffix == ".svg" else ""
        if _DRAWING in text:
            return f'<figure class="picture">{text}</figure>'
        width = _WIDTH.search(text)
        has_panels = width is not None and float(width["width"]) >= _PANELS
        opens = _opens(match)
        return opens.replace('class="picture"', 'class="picture panels"') if has_panels else opens

    return _IMAGE.sub(shown, html)


def _opens(match: re.Match[str]) -> str:
    """Let a picture open in full size, load it when it comes into view, and follow the theme."""
    source = match["src"]
    dark = source.replace("-light.png", "-dark.png")
    if dark == source or not (_ROOT / "docs" / "images" / Path(dark).name).exists():
        return _link(match[0], source, source)
    shown = _link(match[0], source, f"{source}#only-light")
    return shown + _link(match[0].replace(source, dark), dark, f"{dark}#only-dark")


def _link(picture: str, source: str, shown: str) -> str:
    """Link a picture to its file."""
    lazy = picture.replace("<img ", '<img loading="lazy" ', 1).replace(source, shown)
    return f'<a class="picture" href="{source}">{lazy}</a>'


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
