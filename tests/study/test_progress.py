"""Progress worth reading: what a search has found, what it may find, and the steps of a test."""

import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import optuna
import pytest

import riskpilot as rp
from riskpilot.common import one_thread, shown_line
from riskpilot.study import expected_in_words, progress
from tests.pictures import scenes


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """A slow machine writes no more lines, and a quick one looks ahead as often."""
    monkeypatch.setattr(progress, "_SECONDS", float("inf"))
    monkeypatch.setattr(progress, "_REST", 0.0)


def search(n_trials, problem=scenes.PROBLEM, evaluate=scenes.evaluate, n_jobs=1, **settings):
    study = rp.create_study(problem, seed=0, **settings)
    objective = rp.objective(study, evaluate)
    show = rp.ShowProgress()
    settings = {"n_trials": n_trials, "n_jobs": n_jobs, "catch": RuntimeError}
    study.optimize(objective, callbacks=[show], **settings)
    show._end()  # as when nothing refers to it any more: a logged error may refer to it for long
    return study


def lines(capsys):
    shown = capsys.readouterr()
    assert shown.out == ""
    return shown.err.splitlines()


def test_a_log_gets_a_line_when_the_number_of_trials_has_doubled(capsys):
    search(17)
    first, *_, before, last, end = found = lines(capsys)
    assert len(found) == 6  # after 1, 2, 4, 8 and 16 trials, and at the end
    assert first == "1 finished: it is too early to say what will pass"
    assert before.startswith("8 finished: cost ")
    assert "is expected to pass (chance " in last
    assert "; one more evaluation is expected to gain " in last
    assert end.startswith("17 finished: cost ")


def test_a_log_counts_finished_trials_alone(capsys):
    def evaluate(trial):
        if 1 <= trial.number < 9:
            raise RuntimeError("broken")
        return scenes.evaluate(trial)

    search(10, evaluate=evaluate)
    counts = [line.partition(":")[0] for line in lines(capsys)]
    assert counts == ["1 finished", "2 finished, 8 failed"]


def test_it_says_when_nothing_is_expected_to_pass_and_counts_failures(capsys):
    def evaluate(trial):
        if trial.number == 3:
            raise RuntimeError("broken")
        return scenes.evaluate(trial)

    search(16, rp.Problem([rp.Risk("error", 0.01)], "cost"), evaluate)
    last = lines(capsys)[-1]
    assert last.startswith("15 finished, 1 failed: nothing is expected to pass so far")
    assert "the best chance is below 1 %" in last


def test_with_an_open_limit_it_does_not_say_that_it_is_too_early_for_good(capsys):
    search(3, rp.Problem([rp.Risk("error")], "cost"))
    said = {line.partition(": ")[2] for line in lines(capsys)}
    assert said == {"what will pass hangs on the open limit of error"}


def test_open_limits_are_named():
    problem = rp.Problem([rp.Risk("error"), rp.Risk("toxic", 0.1), rp.Risk("unfair")], "cost")
    found = expected_in_words(None, problem)
    assert found == "what will pass hangs on the open limits of error and unfair"


def test_any_sampler_and_several_threads_are_shown(capsys):
    search(16, sampler=optuna.samplers.RandomSampler(0), n_jobs=2)
    found = lines(capsys)
    assert len(found) <= 6
    assert found[-1].startswith("16 finished")
    assert "expected to pass" in found[-1]


class Renewed:
    """A line in place, which remembers all that it showed and whether it was closed."""

    is_in_place = True

    def __init__(self, keep):
        self.said = []
        self.show = self.said.append
        self.close = lambda: self.said.append("closed")


@pytest.fixture
def renewed(monkeypatch):
    """The lines that are shown in place of those of a terminal, one for each study."""
    made = []
    monkeypatch.setattr(progress, "ShownLine", lambda keep: made.append(Renewed(keep)) or made[-1])
    return made


class NoTimer:
    """A timer that does not fire by itself; the last one that was started can be fired."""

    last = None

    def __init__(self, seconds, fire):
        self.fire = fire

    def start(self):
        NoTimer.last = self

    def cancel(self):
        pass


@pytest.fixture
def slow_looks(monkeypatch):
    """After the first look ahead no other one is due, unless it is made up for."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(progress, "_clock", lambda: next(ticks))
    monkeypatch.setattr(progress, "_REST", 10.0**9)
    monkeypatch.setattr(progress.threading, "Timer", NoTimer)


def line_of(study):
    """What a line says of a study as it is now."""
    return progress._words(progress.still(study))


def test_the_last_line_is_true_although_looks_were_left_out(renewed, slow_looks):
    study = search(9)
    (line,) = renewed
    first, *left = line.said
    assert first.startswith("1 finished")
    assert left == [line_of(study), "closed"]
    assert left[0].startswith("9 finished: cost ")


def test_a_look_that_was_left_out_is_made_up_for(renewed, slow_looks):
    study = scenes.study(4)
    shown = rp.ShowProgress()
    shown(study, study.trials[-1])
    study.optimize(rp.objective(study, scenes.evaluate), n_trials=4)
    shown(study, study.trials[-1])
    (line,) = renewed
    assert len(line.said) == 1
    NoTimer.last.fire()
    assert line.said[1:] == [line_of(study)]
    NoTimer.last.fire()
    assert len(line.said) == 2


def test_one_callback_begins_anew_for_another_study(capsys):
    shown, easy, hard = rp.ShowProgress(), scenes.study(8), scenes.study(0)
    for study, n_trials in ((easy, 3), (hard, 2)):
        objective = rp.objective(study, scenes.evaluate)
        study.optimize(objective, n_trials=n_trials, callbacks=[shown])
    counts = [line.partition(" finished: ")[0] for line in lines(capsys)]
    assert counts == ["9", "11", "1", "2"]


def test_the_line_of_a_study_is_closed_before_that_of_another_one(renewed, slow_looks):
    shown = rp.ShowProgress()
    for study in (scenes.study(9), scenes.study(1)):
        shown(study, study.trials[-1])
    first, second = renewed
    assert first.said[-1] == "closed"
    assert second.said == ["1 finished: it is too early to say what will pass"]


def test_names_cannot_colour_the_terminal(capsys):
    shown_line.ShownLine(keep=True).show("\x1b[31mcost")
    assert lines(capsys) == ["\\x1b[31mcost"]


def test_a_study_without_a_problem_is_refused():
    study = optuna.create_study()
    with pytest.raises(rp.StudyError, match="carries no riskpilot problem"):
        study.optimize(lambda trial: 0.0, n_trials=1, callbacks=[rp.ShowProgress()])


def test_it_can_be_sent_to_another_process(capsys):
    shown = rp.ShowProgress()
    search_more = pickle.loads(pickle.dumps(shown))
    study = scenes.study(1)
    search_more(study, study.trials[0])
    assert len(lines(capsys)) == 1


SCRIPT = """
import optuna, riskpilot as rp
from tests.pictures import scenes
study = rp.create_study(scenes.PROBLEM, seed=0)
study.optimize(rp.objective(study, scenes.evaluate), n_trials=9, callbacks=[rp.ShowProgress()])
rp.select(study, show_progress=True)
optuna.logging.get_logger("optuna").info("the log goes on")
print("the end")
"""


def test_a_terminal_shows_one_line_and_logs_above_it():
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    surroundings = {
        **os.environ,
        "TERM": "xterm",
        "COLUMNS": "300",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stdout=theirs, stderr=theirs, env=surroundings
    )
    os.close(theirs)
    output = b""
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:  # so Linux says that the other side has closed
            break
        if not read:
            break
        output += read
    os.close(ours)
    assert process.wait(60) == 0
    *rows, last = [row for row in output.decode().split("\r\n") if row.strip()]
    assert last.endswith("the end")
    assert "the log goes on" in rows[-1]
    # The line is written again below each row of the log, in the place where it was.
    assert sum("finished: " in row and "Trial" not in row for row in rows) == 1
    assert "Testing" in output.decode()


def test_a_notebook_shows_one_card():
    import nbformat
    from nbclient import NotebookClient

    cells = [nbformat.v4.new_code_cell(SCRIPT)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120).execute()
    cards = [
        output.data["text/html"]
        for output in notebook.cells[0].outputs
        if output.output_type == "display_data"
    ]
    assert "9 finished: cost" in cards[0]
    assert cards[1:] in ([], [""])  # the steps of the selection are gone


def test_select_shows_its_steps_when_asked(capsys, monkeypatch):
    monkeypatch.setattr(shown_line, "_SOON", -1.0)
    study = rp.create_study(scenes.PROBLEM, seed=0, n_calibration=150)

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        return rp.Evaluation({"error": np.arange(200) < 20 * x, "cost": -x})

    def calibrate(trial):
        return {"error": np.arange(150) < 20 * trial.params["x"]}

    study.optimize(rp.objective(study, evaluate), n_trials=3)
    rp.select(study, calibrate=calibrate, show_progress=True)
    steps = [line.split()[0] for line in lines(capsys)]
    assert steps == ["Putting", "Making", "Reading", "Testing"]
    rp.select(study)
    assert lines(capsys) == []
    with pytest.raises(rp.ProblemError, match="show_progress is True or False"):
        rp.select(study, show_progress="yes")


def test_a_callback_that_is_collected_inside_a_proposal_holds_nothing_up(capsys):
    """The memory of one may be collected at any moment, since a logged error refers to it."""
    study = rp.create_study(scenes.PROBLEM, seed=0)
    show = rp.ShowProgress()
    study.optimize(rp.objective(study, scenes.evaluate), n_trials=5, callbacks=[show])
    kept = [show]
    del show

    def collected():
        with one_thread():
            kept.clear()

    search_of_another = threading.Thread(target=collected, daemon=True)
    search_of_another.start()
    search_of_another.join(20)
    assert not search_of_another.is_alive()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(20)  # the one that writes the last line
    assert lines(capsys)[-1].startswith("5 finished: cost ")
