"""One label is no "1 labels": what commands and values say where there is one of a thing."""

import re

import numpy as np
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.common import how_many

PROBLEM = rp.Problem([rp.Risk("error", limit=0.9)], minimize="cost", delta=0.5)
THINGS = (
    "labels|files|examples|configurations|candidates|trials|questions|rows|ids|groups|points|"
    "configs|losses|others|blocks"
)


def check(*texts):
    """Find no plural of one thing, and one of a thing at all; "1 of 1" is none."""
    said = " ".join(" ".join(map(str, texts)).split())
    assert not re.findall(rf"(?<![\d.,])1 (?:\w+ )?(?:{THINGS})\b", said), said
    assert re.search(r"(?<![\d.,])1 [a-z]+", said), said


def run(*arguments, codes=(0,)):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code in codes, f"{result.output}\n{result.exception!r}"
    return result.output


@pytest.fixture(scope="module")
def selection():
    return rp.select_from_losses(
        PROBLEM, validation={"error": [[0.0]], "cost": [1.0]}, calibration={"error": [[0.0]]}
    )


@pytest.fixture
def certificate(selection, tmp_path):
    return selection.certificate.save(tmp_path / "certificate.json")


def test_a_number_of_things_is_written_with_its_name():
    assert [how_many(n, "label") for n in (0, 1, 2, 1000)] == [
        "0 labels",
        "1 label",
        "2 labels",
        "1,000 labels",
    ]


def test_a_selection_of_one_configuration(selection, tmp_path):
    page = selection.report(tmp_path / "report.html").read_text()
    check(selection, re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))


def test_a_watch_of_one_label(certificate, tmp_path):
    labels, again = tmp_path / "labels.csv", tmp_path / "again.csv"
    labels.write_text("example,error\na,0\n")
    again.write_text("example,error\na,1\n")
    asked = ("watch", certificate, "--state", tmp_path / "state.json", "--losses")
    check(run(*asked, labels))
    told = run(*asked, again)
    check(told)
    assert "1 label was passed over, because its id had been counted" in " ".join(told.split())
    watch = rp.Watch.load(tmp_path / "state.json")
    page = watch.report(tmp_path / "watch.html").read_text()
    check(watch, repr(watch), watch._repr_html_())
    check(re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL))


def test_a_gate_and_a_plan_for_one_example(tmp_path):
    table = tmp_path / "new.csv"
    table.write_text("example,error\na,0\n")
    summary = tmp_path / "summary.md"
    check(run("gate", table, "-r", "error<=0.9", "--summary", summary, codes=(0, 1)))
    check(summary.read_text())
    check(run("plan", "-r", "error<=0.9", "-n", 1, "--delta", 0.5, codes=(0, 3)))
    check(*rp.plan_calibration(PROBLEM, 1))
    check(*rp.plan_judge(PROBLEM, 1, unlabelled=1, correlations={"error": 0.5}))


def test_a_study_of_one_trial(tmp_path):
    study = rp.create_study(PROBLEM, storage=str(tmp_path / "study.log"), seed=0)
    zeros = np.zeros(5)
    study.optimize(
        rp.objective(study, lambda trial: rp.Evaluation({"error": zeros, "cost": 1.0})), n_trials=1
    )
    check(rp.seal(study))
    calibration = rp.Calibration(study, horizon=1)
    check(calibration.message, calibration._repr_html_())
    calibration.add({"error": [[0.0]]})
    check(calibration.message)


def test_one_id_in_both_splits(tmp_path):
    table = tmp_path / "table.csv"
    rows = "a,validation,1,0,1\na,calibration,1,0,1\n"
    table.write_text("config,split,example,error,cost\n" + rows)
    check(run("select", table, "-r", "error<=0.9", "-m", "cost", codes=(2,)))
    with pytest.raises(rp.LeakageError) as caught:
        rp.select_from_losses(
            PROBLEM,
            validation={"error": [[0.0, 1.0]], "cost": [1.0]},
            calibration={"error": [[0.0, 0.0]]},
            validation_ids=["a", "b"],
            calibration_ids=["b", "c"],
        )
    check(caught.value)
