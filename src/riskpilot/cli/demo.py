"""``riskpilot demo``: a search on real data, from the limit to the certificate."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from optuna import Study
from rich.console import Console

from riskpilot.cli import terminal
from riskpilot.cli.options import examples
from riskpilot.cli.select import show_message
from riskpilot.guarantee import config_in_words, plan_calibration
from riskpilot.study import expected_in_words, outlook_of

if TYPE_CHECKING:
    from riskpilot.demo import Demo, Habit, Trained

EXAMPLES = examples(
    "riskpilot demo",
    "riskpilot demo --quick --out /tmp/demo",
    "riskpilot demo --limit 0.145 --seed 3",
)


def demo(
    out: Annotated[Path, typer.Option(help="The folder for what it writes.")] = Path("demo"),
    limit: Annotated[
        float | None, typer.Option(help="The largest error allowed; 0.15, quick 0.165.")
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=2, help="How many models to train; 14, quick 9.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same run.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Small models, in seconds.")] = False,
) -> None:
    """Train, search, test and certify on real census data, in less than two minutes."""
    # Only this command trains and draws; importing what that takes would slow down the others.
    from riskpilot.demo import FULL, QUICK, compare, demo_problem, run, write

    setting = QUICK if quick else FULL
    setting = replace(
        setting,
        limit=setting.limit if limit is None else limit,
        trials=setting.trials if trials is None else trials,
    )
    console = terminal.output()
    problem = demo_problem(setting)
    out.mkdir(parents=True, exist_ok=True)  # better to fail now than after the training
    terminal.say(console, "Adult census data: who earns more than 50,000 dollars?", "bold")
    terminal.say(console, f"{problem} (gap: between men and women.)")
    terminal.say(console, f"Plan: {plan_calibration(problem, setting.calibration)[0]}\n")
    with terminal.progress() as bar:
        task = bar.add_task("Training and searching", total=setting.trials)

        def after_each(study: Study) -> None:
            expected = expected_in_words(outlook_of(study), problem)
            bar.update(task, advance=1, description=f"Searching: {expected}")

        found = run(setting, seed=seed, after_each=after_each)
        bar.update(task, description="Searching")
        again = bar.add_task("Choosing again on data drawn anew", total=setting.draws)
        habits = compare(found, setting, seed=seed, after_each=lambda: bar.advance(again))
    files = write(found, out)
    _show_trials(console, found)
    show_message(console, found.selection)
    terminal.say(console)
    _show_held_out(console, found, setting.calibration)
    _show_habits(console, habits, setting.draws)
    terminal.say(console, _moral(habits, problem.delta))
    terminal.show_files(console, files)
    check = f"riskpilot verify {files['certificate']} --losses {files['losses']}"
    terminal.say(console, f"\nCheck it: {check}")


def _show_trials(console: Console, demo: "Demo") -> None:
    """Show every model on validation data."""
    chosen = demo.selection.config
    rows = [
        (
            [
                i + 1,
                *(f"{value:.3f}" for value in one.config.values()),
                f"{one.validation.error.mean():.4f}",
                f"{one.validation.gap:.4f}",
                "certified" if one.config in demo.selection.valid else "",
            ],
            "bold green" if one.config == chosen else None,
        )
        for i, one in enumerate(demo.trained)
    ]
    heads = ["trial", *demo.trained[0].config, "error", "gap", ""]
    terminal.show_table(console, "Trials, on validation data", heads, rows)


def _show_held_out(console: Console, demo: "Demo", n_calibration: int) -> None:
    """Show what the certified choice and the usual one do on people that nobody has used."""
    limit = demo.selection.problem.risks[0].limit
    certified = next((one for one in demo.trained if one.config == demo.selection.config), None)
    rows: list[tuple[list[str], str | None]] = []
    for name, one in (("best on validation", demo.usual), ("certified", certified)):
        if one is None:
            rows.append(([name, "", "", "", "nothing"], None))
            continue
        error, gap = _test(one, n_calibration)
        kept = "kept" if limit is not None and error <= limit else "broken"
        cells = [name, f"{error:.4f}", f"{gap:.4f}", kept, config_in_words(one.config)]
        rows.append((cells, "yellow" if kept == "broken" else None))
    heads = ["choice", "test error", "test gap", f"limit {limit:g}", "configuration"]
    terminal.show_table(console, "Both choices on test data", heads, rows)


def _show_habits(console: Console, habits: "dict[str, Habit]", draws: int) -> None:
    """Show how each way to choose fares when its data is drawn many times."""
    names = {
        "usual": "best that keeps the limit on validation data",
        "usual, all data": "the same, with calibration data added to it",
        "riskpilot": "certified by riskpilot",
    }
    rows = [
        (
            [
                names[key],
                f"{100 * habit.broken:.1f} %",
                "-" if math.isnan(habit.gap) else f"{habit.gap:.4f}",
                f"{100 * habit.chosen:.0f} %",
            ],
            "bold green" if key == "riskpilot" else None,
        )
        for key, habit in habits.items()
    ]
    heads = ["way to choose", "breaks the limit", "mean gap", "chose something"]
    terminal.show_table(console, f"The same choice {draws} times, on data drawn anew", heads, rows)


def _moral(habits: "dict[str, Habit]", delta: float) -> str:
    """Say what the comparison means, where it shows anything."""
    if habits["usual"].broken <= habits["riskpilot"].broken:
        return (
            f"So few draws show no difference: both ways kept the limit about as often. riskpilot "
            f"promises to break it in at most {100 * delta:g} % of the draws, and the other way "
            f"promises nothing; the demo without --quick draws often enough to show that.\n"
        )
    return (
        f"Trusting the number by which one chose broke the limit in "
        f"{100 * habits['usual'].broken:.1f} % of the draws. riskpilot promises to break it in at "
        f"most {100 * delta:g} %, and broke it in {100 * habits['riskpilot'].broken:.1f} %. The "
        f"people that neither training nor search has seen stand in for the world here: the limit "
        f"is broken where their error is above it.\n"
    )


def _test(one: "Trained", n_calibration: int) -> tuple[float, float]:
    """Compute error and gap on the test data, which follows the calibration data."""
    test = one.held_out.part(slice(n_calibration, None))
    return float(test.error.mean()), test.gap
