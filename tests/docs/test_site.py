"""The built site: no warnings, nothing from a network, no link without its target."""

import runpy
import subprocess
import sys

import pytest
from pages import ROOT

problems = runpy.run_path(str(ROOT / "docs" / "check_site.py"))["problems"]


def test_site_builds_without_warnings_and_needs_no_network(tmp_path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (site / "guides" / "auditing.html").exists()
    assert not list(site.rglob("*.py"))
    assert list(problems(site)) == []


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('<script src="https://host/x.js"></script>', "fetches https://host/x.js"),
        ('<link rel="stylesheet" href="//host/x.css">', "fetches //host/x.css"),
        ('<img src="http://host/x.png">', "fetches http://host/x.png"),
        ("<style>@import 'https://host/x.css'</style>", "fetches https://host/x.css"),
        ('<pre class="mermaid"></pre>', "mermaid"),
        ('<a href="gone.html">x</a>', "does not exist"),
        ('<a href="#gone">x</a>', "no such place"),
    ],
)
def test_check_of_the_site_finds(content, complaint, tmp_path):
    (tmp_path / "index.html").write_text(f'<p id="here">{content}</p>')
    (found,) = problems(tmp_path)
    assert complaint in found


def test_check_of_the_site_allows_links_out_and_links_that_have_targets(tmp_path):
    (tmp_path / "index.html").write_text(
        '<p id="here"><a href="https://host">x</a> <a href="#here">x</a> <a href="b.css">x</a></p>'
    )
    (tmp_path / "b.css").write_text("p { background: url(x.png) }")
    assert list(problems(tmp_path)) == []
