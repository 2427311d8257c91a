"""The script that draws: the one that its note names, small, and enough for every figure."""

import base64
import gzip
import hashlib
import json
import tarfile
from importlib.metadata import version
from pathlib import Path

import plotly.graph_objects as go
import pytest
from plotly.offline import get_plotlyjs_version

from riskpilot import plots
from riskpilot.plots.library import BASIC_TRACES, asset, library_for
from tests.pictures import scenes, written_pages
from tests.pictures.figures import every_figure
from tools import bundles


@pytest.mark.parametrize("bundle", bundles.BUNDLES.values(), ids=bundles.BUNDLES)
def test_each_script_is_the_one_that_its_note_names(bundle):
    script = gzip.decompress((bundle.folder / f"{bundle.script}.gz").read_bytes())
    note = json.loads((bundle.folder / f"{bundle.script}.json").read_text())
    assert hashlib.sha256(script).hexdigest() == note["sha256"]
    assert f"v{note['version']}".encode() in script[:200]
    assert (bundle.folder / f"{bundle.script}.LICENSE.txt").stat().st_size > 500


def test_pages_draw_with_the_version_that_the_pinned_plotly_has():
    pins = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8")
    if f"plotly=={version('plotly')}" not in pins.split():
        pytest.skip("another version of plotly is installed than the one that is pinned")
    assert json.loads(asset("plotly-basic.min.js.json"))["version"] == get_plotlyjs_version()


def test_packing_keeps_script_licence_and_note(tmp_path, monkeypatch):
    contents = {
        "package.json": json.dumps({"name": "axe-core", "version": "1", "license": "MPL-2.0"}),
        "axe.min.js": "draw()",
        "LICENSE": "free",
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        for name in contents:
            archive.add(tmp_path / name, f"package/{name}")
    kept = tmp_path / "kept"
    kept.mkdir()
    monkeypatch.setitem(bundles.BUNDLES, "axe-core", bundles.Bundle("axe.min.js", kept))
    note = json.loads(bundles.pack(tmp_path / "a.tgz").read_text())
    assert note["sha256"] == hashlib.sha256(b"draw()").hexdigest()
    assert gzip.decompress((kept / "axe.min.js.gz").read_bytes()) == b"draw()"
    assert (kept / "axe.min.js.LICENSE.txt").read_text() == "free"


def test_the_small_bundle_draws_every_figure(search):
    figures = list(every_figure(search))
    assert {trace.type for figure in figures for trace in figure.data} <= BASIC_TRACES
    assert len(library_for(figures)) < 600_000


def test_a_figure_of_another_kind_gets_the_whole_library():
    whole = gzip.decompress(base64.b64decode(library_for([go.Figure(go.Heatmap(z=[[1]]))])))
    assert b"heatmap" in whole
    assert len(whole) > 4_000_000


@pytest.mark.parametrize("name", written_pages.KINDS)
def test_pages_are_whole_and_below_a_megabyte_and_a_half(name, written):
    assert written[name].stat().st_size < 1_500_000
    text = written[name].read_text(encoding="utf-8")
    assert text.count('class="drawing"') == len(json.loads(_data(text))["figures"]) > 0


def _data(text):
    start = text.index('id="page">') + len('id="page">')
    return text[start : text.index("</script>", start)]


def test_risks_with_long_names_are_short_where_the_page_is_narrow():
    selection = scenes.two_risks(n=30)
    chosen = selection.certificate.chosen
    figure = plots.risk_bounds(selection.plan, selection.result, chosen, selection.candidates)
    assert f"{chosen + 1} ★" in figure.layout.meta["short_names"]
    assert all(len(name) < 8 for name in figure.layout.meta["short_names"])
