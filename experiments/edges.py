"""False promises at the edges of the vocabulary, then and now: ``python -m experiments.edges``.

Each scene goes through the public API at a case in which the promise once broke. Its figure before
is the share of runs that certified a configuration which breaks its limit, at delta = 0.1, as it
was measured before the repair. Its figure now is measured here. The edits of certificates are those
of the guarantee tests.
"""

import argparse
import csv
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from rich.console import Console
from rich.progress import track
from rich.table import Table

import riskpilot as rp
from riskpilot.guarantee.uses import Use
from riskpilot.tables import read_losses
from tests.guarantees import test_edges_verify as edited

OUT = Path(__file__).parent / "results" / "edges.json"
RUNS = 200
Arrays = dict[str, Any]
Draw = Callable[[np.random.Generator], Arrays]


@dataclass(frozen=True)
class Row:
    """One class of mistake: what it is, and its figures before and now, as the page shows them."""

    number: str
    mistake: str
    before: str
    now: str


# --- what is measured ----------------------------------------------------------------------------


def certified(problem: rp.Problem, validation: Arrays, calibration: Arrays) -> bool:
    """Say whether the one configuration is certified."""
    validation = {**validation, problem.minimize: [0.0]}
    found = rp.select_from_losses(problem, validation=validation, calibration=calibration)
    return found.config is not None


def rate(limit: rp.Risk | Callable[[], rp.Risk], draw: Draw, runs: int = RUNS) -> str:
    """Measure how often a configuration that breaks its limit is certified, or say "refused"."""
    rng = np.random.default_rng(0)
    try:
        risk = limit if isinstance(limit, rp.Risk) else limit()
        problem = rp.Problem([risk], "cost")
        passed = sum(certified(problem, draw(rng), draw(rng)) for _ in range(runs))
    except rp.RiskpilotError:
        return "refused"
    return f"{passed / runs:.2f}"


def predicted(risk: rp.Risk, m: int, draw: Callable[..., tuple[Any, ...]], **codes: Any) -> Draw:
    """Make losses of a risk from labels, predictions and groups (or the reference's)."""

    def losses(rng: np.random.Generator) -> Arrays:
        label, predictions, beside = draw(rng, m)
        return rp.losses_from_predictions(risk, label, predictions[None], **beside, **codes)

    return losses


# --- the scenes ----------------------------------------------------------------------------------


def worst_group_by_name() -> str:
    """A small group is wrong half of the time; the mean error is about 0.07."""

    def draw(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
        label, small = rng.integers(0, 2, m), rng.random(m) < 0.1
        wrong = rng.random(m) < np.where(small, 0.5, 0.02)
        return label, np.where(wrong, 1 - label, label), {"groups": np.where(small, "s", "l")}

    risk = rp.Risk("worst_group_error", 0.2)
    return rate(risk, predicted(risk, 600, draw))


def accuracy_as_a_loss() -> str:
    return rate(lambda: rp.Risk("accuracy", 0.9), lambda rng: {"accuracy": rng.random((1, 9)) < 1})


def the_class_minus_one() -> str:
    """Four of ten examples of class 1 are taken for class -1."""

    def draw(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
        label = rng.choice([-1, 1], m, p=[0.2, 0.8])
        return label, np.where(rng.random(m) < 0.4, -1, label), {}

    risk = rp.Risk("error", 0.2)
    return rate(risk, predicted(risk, 600, draw))


def difference_of_rates_of_other_examples() -> str:
    return rate(
        lambda: rp.Risk("false_discovery_rate", at_most=0.05, statistic=rp.Difference()),
        lambda rng: {},
    )


def drop_that_hides_abstention() -> str:
    """Accuracy falls from 0.9 to 0.45 because every other example is handed over."""

    def draw(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
        label = rng.integers(0, 2, m)
        dense = np.where(rng.random(m) < 0.9, label, 1 - label)
        return label, np.where(rng.random(m) < 0.5, -1, dense), {"reference": dense}

    risk = rp.Risk("accuracy_drop", at_most=0.02)
    return rate(risk, predicted(risk, 600, draw, abstain=-1))


def gap_with_a_lower_limit() -> str:
    return rate(lambda: rp.Risk("recall", at_least=0.9, statistic=rp.GroupGap()), lambda rng: {})


def groups_that_nobody_named() -> str:
    """A group of 0.4 % is always wrong. A promise is false where it speaks of that group."""
    rng = np.random.default_rng(0)
    problem = rp.Problem([rp.Risk("worst_group_error", 0.2)], "cost")
    false = 0
    for _ in range(RUNS):
        tables = []
        for _ in range(2):
            rare = rng.random(200) < 0.004
            losses = rare | (rng.random(200) < 0.05)
            tables.append(
                {"worst_group_error": losses[None], "groups": np.where(rare, "rare", "other")}
            )
        try:
            found = rp.select_from_losses(
                problem, validation={**tables[0], "cost": [0.0]}, calibration=tables[1]
            )
        except rp.LossError:  # the group is in one of the two samples alone
            continue
        groups = found.certificate.groups.get("worst_group_error", [])
        spoken_of = "rare" in groups or "other" not in found.certificate.promise
        false += found.config is not None and spoken_of
    return f"{false / RUNS:.2f}; the promise names its groups"


def labels_with_a_separator() -> str:
    """Within the label "x | 0" the positive predictions of two groups differ by 0.3."""

    def draw(rng: np.random.Generator) -> Arrays:
        group, label = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
        flagged = rng.random((1, 400)) < 0.3 + 0.3 * (group == 0) * (label == 0)
        names = np.array(["x | 0", "x | 1"])[label]
        return {"flagged": flagged, "groups": np.array(["a", "b"])[group], "lab": names}

    statistic = rp.GroupGap(("a", "b"), directed=True, within="lab")
    return rate(rp.Risk("flagged", 0.1, statistic=statistic), draw)


def quantile_in_a_huge_range() -> str:
    """A fifth of the losses is far above the limit of the 95 % quantile."""
    risk = rp.Risk("x", 10, low=-1e18, high=1e18, statistic=rp.Quantile(0.95))
    return rate(risk, lambda rng: {"x": 60.0 * (rng.random((1, 400)) < 0.2)})


def difference_beyond_its_range() -> str:
    def draw(rng: np.random.Generator) -> Arrays:
        return {"x": rng.random((1, 400)) < 0.3, "reference": np.zeros(400, bool)}

    return rate(rp.Risk("x", 0.2, high=0.5, statistic=rp.Difference()), draw)


def groups_in_a_file_that_look_alike() -> str:
    """The group "01", a tenth of the examples, is wrong half of the time, and "1" never."""
    problem = rp.Problem([rp.Risk("x", 0.15, statistic=rp.WorstGroup(), groups="who")], "cost")
    rng = np.random.default_rng(0)
    passed, runs = 0, 40
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "losses.csv"
        for _ in range(runs):
            rows = [
                (
                    split,
                    "only",
                    int(i % 10 == 0 and rng.random() < 0.5),
                    1.0,
                    "1" if i % 10 else "01",
                )
                for split in ("validation", "calibration")
                for i in range(200)
            ]
            with path.open("w", newline="") as file:
                csv.writer(file).writerows([("split", "config", "x", "cost", "who"), *rows])
            table = read_losses(path, problem.labels)
            found = rp.select_from_losses(
                problem, validation=table.validation, calibration=table.calibration
            )
            passed += found.config is not None
    return f"{passed / runs:.2f}"


def masked_losses() -> str:
    """A third of those that count is wrong; the others are masked and hold zeros."""

    def draw(rng: np.random.Generator) -> Arrays:
        counts = rng.random((1, 400)) < 0.5
        return {"x": np.ma.array((rng.random((1, 400)) < 0.33) & counts, mask=~counts)}

    plain = rate(rp.Risk("x", 0.25), draw)
    return f"{plain}; {rate(rp.Risk('x', 0.25, conditional=True), draw)} where masks may be"


def range_read_off_the_sample() -> str:
    losses = np.full((1, 30), 0.5)
    losses[0, 3] = 7.0
    try:
        certified(rp.Problem([rp.Risk("x", 0.2)], "cost"), {"x": losses}, {"x": losses})
    except rp.LossRangeError as error:
        advised = re.search(r"(high|low)=[-\d]", str(error))
        return "a range is advised" if advised else "refused; no range is advised"
    return "accepted"


def graph_that_returns_its_weight() -> str:
    graph = rp.Graphical([0.5, 0.5, 0], [[0, 1 - 1e-13, 0], [1, 0, 1e-12], [0, 0, 0]])
    rejected = graph(np.log([1e-9, 1e-9, 0.9]), 0.1)[2]
    return "p = 0.9 is rejected" if rejected else "p = 0.9 is not rejected"


def examples_sorted_by_label() -> str:
    """5 % positives with graded losses, stored last; the risk sits at its limit."""

    def graded(rng: np.random.Generator, m: int) -> Any:
        positive = rng.random(m) < 0.05
        losses = np.where(positive, rng.uniform(0.5, 1, m), rng.uniform(0, 0.02, m))
        return losses[np.argsort(positive, kind="stable")][None]

    return rate(rp.Risk("miss", 0.047), lambda rng: {"miss": graded(rng, 830)}, 2 * RUNS)


def lower_limit_that_is_set_later() -> str:
    """A precision of 0.9, and the limit set to 0.95."""

    def draw(rng: np.random.Generator, m: int) -> tuple[Any, ...]:
        predictions = rng.integers(0, 2, m)
        return np.where(rng.random(m) < 0.9, predictions, 1 - predictions), predictions, {}

    risk = rp.Problem([rp.Risk("precision")], "cost").with_limits(precision=0.95).risks[0]
    return rate(risk, predicted(risk, 600, draw))


# --- silent differences --------------------------------------------------------------------------


def study_of(problem: rp.Problem, *evaluations: rp.Evaluation, **settings: Any) -> optuna.Study:
    """A study whose trials return these evaluations."""
    study = rp.create_study(problem, sampler=optuna.samplers.RandomSampler(seed=0), **settings)

    def evaluate(trial: optuna.Trial) -> rp.Evaluation:
        trial.suggest_float("x", 0, 1)
        return evaluations[trial.number]

    study.optimize(rp.objective(study, evaluate), n_trials=len(evaluations))
    return study


def losses_on_the_limit() -> str:
    """Seconds rounded to 0.1, many of them exactly on the limit of their 95 % quantile."""
    risk = rp.Risk("seconds", 0.3, high=10, statistic=rp.Quantile(0.95))
    problem = rp.Problem([risk], "cost")
    rng = np.random.default_rng(3)
    seen, opened = (
        rng.choice(np.float32([0.1, 0.3, 0.4]), 1000, p=[0.4, 0.58, 0.02]) for _ in range(2)
    )
    table = rp.select_from_losses(
        problem,
        validation={"seconds": seen[None], "cost": [1.0]},
        calibration={"seconds": opened[None]},
    )
    evaluation = rp.Evaluation({"seconds": seen, "cost": 1.0}, {"seconds": opened})
    study = rp.select(study_of(problem, evaluation))
    same = float(table.p_values[0]) == float(study.p_values[0])
    return f"p = {float(table.p_values[0]):.0e} from both" if same else "two p-values"


def single_precision_at_an_end() -> str:
    rng = np.random.default_rng(0)
    losses = [np.where(rng.random((1, 400)) < 0.05, 0.3, 0).astype(np.float32) for _ in range(2)]
    problem = rp.Problem([rp.Risk("x", 0.1, high=0.3)], "cost")
    try:
        certified(problem, {"x": losses[0]}, {"x": losses[1]})
    except rp.LossRangeError:
        return "refused"
    return "accepted"


def hits_for_misses() -> str:
    rng = np.random.default_rng(3)
    label = rng.integers(0, 2, 600)
    predictions = np.where(rng.random(600) < 0.95, 0, label)
    hits = {"recall": np.where(label == 1, predictions == 1, np.nan)}
    try:
        rp.check_losses(rp.Risk("recall", at_least=0.9), hits, label, predictions)
    except rp.LossError:
        return "noticed by `check_losses`"
    return "not noticed"


def two_studies_on_the_same_losses() -> str:
    rng = np.random.default_rng(0)
    seen, opened = rng.random(500) < 0.05, rng.random(500) < 0.05
    evaluation = rp.Evaluation({"error": seen, "cost": 1.0}, {"error": opened})
    problem, storage = (
        rp.Problem([rp.Risk("error", 0.1)], "cost"),
        optuna.storages.InMemoryStorage(),
    )
    for name in ("one", "two"):
        study = study_of(problem, evaluation, storage=storage, study_name=name)
        number = rp.select(study).certificate.use["number"]
    return f"the second is question {number}"


def trial_without_losses() -> str:
    rng = np.random.default_rng(0)
    evaluation = rp.Evaluation(
        {"error": rng.random(500) < 0.05, "cost": 1.0}, {"error": rng.random(500) < 0.05}
    )
    study = study_of(rp.Problem([rp.Risk("error", 0.1)], "cost"), evaluation)
    study.add_trial(
        optuna.create_trial(
            values=[0.0] * len(study.directions),
            params={"x": 0.5},
            distributions={"x": optuna.distributions.FloatDistribution(0, 1)},
        )
    )
    selection = rp.select(study)
    named = selection.left_out == (1,) and "Left out" in str(selection)
    return "left out, and the selection says so" if named else "left out silently"


def statistic_in_words() -> str:
    risk = rp.Risk("latency", 50, high=1000, statistic=rp.Quantile(0.95))
    return f"“{risk}”"


def delta_above_a_half() -> str:
    try:
        rp.Problem([rp.Risk("error", 0.1)], "cost", delta=0.95)
    except rp.ProblemError:
        return "refused"
    return "accepted"


# --- verification --------------------------------------------------------------------------------


def made_up_estimates() -> str:
    """The luckiest row on calibration data, put first by made-up estimates."""
    problem = rp.Problem([rp.Risk("error", 0.19)], "cost")
    accepted = false = 0
    for seed in range(20):
        tables = edited.all_alike(seed)
        certificate = edited.forged(tables, Use(ledger="0" * 64), problem)
        false += certificate.config is not None
        accepted += rp.verify(certificate, **tables).ok
    return f"{accepted} of 20 accepted ({false} false)"


def edits_of_a_study() -> str:
    unseen, n = edited.verdicts(*edited.study_case(None), every_edit=True)
    return f"{len(unseen)} of {n:,} pass; 0 tracebacks"


def edits_of_a_table() -> str:
    unseen, n = edited.verdicts(*edited.table_case(), every_edit=True)
    places = "date and versions, which no loss says" if unseen else "none"
    return f"{len(unseen)} places of {n:,} edits pass ({places}); 0 tracebacks"


SCENES: dict[str, list[tuple[str, str, Callable[[], str]]]] = {
    "promises": [
        ('`Risk("worst_group_error", 0.2)` was tested as a mean', "1.0", worst_group_by_name),
        ('`Risk("accuracy", 0.9)` read “accuracy at most 0.9”', "1.0", accuracy_as_a_loss),
        ("the class -1 was taken for an abstention", "1.0", the_class_minus_one),
        (
            "a difference of two rates was taken over the examples that both count",
            "1.0",
            difference_of_rates_of_other_examples,
        ),
        ("a drop in accuracy did not see abstentions", "1.0", drop_that_hides_abstention),
        ("a gap of recall took a lower limit and read as recall", "0.98", gap_with_a_lower_limit),
        (
            "the promise covered a rare group that no sample held",
            "0.45",
            groups_that_nobody_named,
        ),
        ("labels that contain “ | ” hid a gap", "1.0", labels_with_a_separator),
        ("a quantile vanished in a range of ±1e18", "1.0", quantile_in_a_huge_range),
        ("a difference was clipped to a range too narrow", "0.91", difference_beyond_its_range),
        ("groups “1” and “01” of a CSV became one", "0.96", groups_in_a_file_that_look_alike),
        ("the mask of masked losses was dropped", "1.0", masked_losses),
        (
            "an error advised the sample's largest loss as the range",
            "0.43",
            range_read_off_the_sample,
        ),
        (
            "a graph whose weight returns almost completely rejected anything",
            "always",
            graph_that_returns_its_weight,
        ),
        (
            "examples sorted by label, bets in a fixed order",
            "0.37",
            examples_sorted_by_label,
        ),
        (
            "`with_limits(precision=0.95)` meant a precision of at least 0.05",
            "always",
            lower_limit_that_is_set_later,
        ),
    ],
    "differences": [
        (
            "a loss on the limit of a quantile counted differently in a table and in a study",
            "p = 5e-09 and p = 0.18",
            losses_on_the_limit,
        ),
        (
            "single-precision losses at the end of their range",
            "refused",
            single_precision_at_an_end,
        ),
        ("hits recorded where misses are expected", "a recall of 0 certified", hits_for_misses),
        (
            "two studies put questions to the same calibration losses",
            "both are question 1",
            two_studies_on_the_same_losses,
        ),
        ("a finished trial without losses", "left out silently", trial_without_losses),
        ("a 95 % quantile in words", "“latency <= 50”", statistic_in_words),
        ("`delta=0.95`, where a confidence is meant", "accepted", delta_above_a_half),
    ],
    "verify": [
        ("an order that was bought with made-up estimates", "14 of 20 accepted", made_up_estimates),
        (
            "every edit of one place of a study's certificate, checked against the study",
            "167 of 1,627 pass; 286 tracebacks",
            edits_of_a_study,
        ),
        ("the same for a table's certificate, checked against the losses", "", edits_of_a_table),
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.edges", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    scenes = [(kind, i, *scene) for kind, some in SCENES.items() for i, scene in enumerate(some, 1)]
    found: dict[str, list[dict[str, str]]] = {kind: [] for kind in SCENES}
    shown = Table("#", "mistake", "before", "now")
    for kind, i, mistake, before, measure in track(scenes, "edges"):
        row = Row(str(i), mistake, before, measure())
        found[kind].append(asdict(row))
        shown.add_row(row.number, row.mistake, row.before, row.now)
    options.out.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    Console().print(shown)


if __name__ == "__main__":
    main()
