"""The benchmarks run, compare like with like, and say so where a target is missed."""

import json

import optuna
import pytest

from benchmarks.__main__ import SUITES, as_table, main
from benchmarks.measure import Row, compare

# MAPIE's and torch's own warnings, raised while they are imported or fitted.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")


def test_a_quick_run_writes_every_comparison(tmp_path, capsys):
    level = optuna.logging.get_verbosity()
    rows = main(["--quick", "--out", str(tmp_path / "results.json")])
    optuna.logging.set_verbosity(level)
    written = json.loads((tmp_path / "results.json").read_text())
    assert [row["name"] for row in written["rows"]] == [row.name for row in rows]
    starts = (
        "import",
        "Holm",
        "fixed",
        "select_from_losses",
        "betting",
        "proposal",
        "labels",
        "alarm",
    )
    for start in starts:
        assert any(row.name.startswith(start) for row in rows)
    assert all(row.ratio > 0 and row.met is None for row in rows)
    assert "riskpilot against its peers" in capsys.readouterr().out


def test_one_suite_alone_leaves_the_figures_of_the_others(tmp_path, monkeypatch, capsys):
    class Suite:
        @staticmethod
        def rows(quick):
            yield Row("work", "peer", 1.0, 2.0, "faster", 1.5, 3)

    monkeypatch.setitem(SUITES, "procedures", Suite)
    path = tmp_path / "results.json"
    other = {"name": "other work", "peer_name": "peer"}
    path.write_text(json.dumps({"rows": [{"name": "work", "peer_name": "peer"}, other]}))
    main(["--only", "procedures", "--out", str(path)])
    kept, new = json.loads(path.read_text())["rows"]
    assert kept == other
    assert (new["name"], new["ratio"]) == ("work", 2.0)


def test_both_sides_run_equally_often_and_take_turns():
    order = []
    compare(
        "ours",
        "peer",
        lambda: order.append("o"),
        lambda: order.append("p"),
        goal="faster",
        target=None,
        repeats=4,
    )
    assert "".join(order) == "op" + "oppooppo"


@pytest.mark.parametrize(
    ("goal", "ours", "peer", "ratio", "met"),
    [
        ("faster", 1.0, 20.0, 20.0, True),
        ("faster", 3.0, 20.0, 20 / 3, False),
        ("within", 10.0, 2.0, 5.0, True),
        ("within", 22.0, 2.0, 11.0, False),
    ],
)
def test_a_ratio_meets_its_target_or_the_table_says_no(goal, ours, peer, ratio, met):
    row = Row("work", "peer", ours, peer, goal, 10.0, 3)
    assert row.ratio == pytest.approx(ratio)
    assert row.met is met
    assert list(as_table([row]).columns[-1].cells) == ["yes" if met else "[bold red]no[/]"]
