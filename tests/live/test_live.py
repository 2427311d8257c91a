"""The live page: what it shows of a search, what it hides, and whom it answers."""

import contextlib
import http.client
import json
import re
import socket
import threading
from urllib.parse import urlsplit

import numpy as np
import optuna
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot import live
from riskpilot.cli.app import app
from riskpilot.live.server import _LOOK_SECONDS
from riskpilot.study import still
from riskpilot.study.storages.patience import StorageUnreachableError, is_hurried
from tests.pictures import browser, scenes

PATHS = ("/", "/page.css", "/live.css", "/live.js", "/figures.js", "/points.js", "/plotly.js")


@contextlib.contextmanager
def served(study, **settings):
    """The address of the page of a study, which is served meanwhile."""
    started, box = threading.Event(), []

    def ready(page):
        box.append(page)
        started.set()

    settings = {"port": 0, "ready": ready, **settings}
    thread = threading.Thread(target=live.serve, args=(study,), kwargs=settings, daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield box[0]
    finally:
        box[0].stop()
        thread.join(60)
        assert not thread.is_alive()


def ask(page, path="/", *, method="GET", **headers):
    """The status, the headers and the text of an answer."""
    place = urlsplit(page.address)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def text_of(page):
    """The page, once it shows the study as it stands."""
    status, _, content = ask(page)
    assert status == 200
    return content.decode()


@pytest.fixture(autouse=True)
def always_look(monkeypatch):
    """Every answer is about the study as it stands, however soon after the last one."""
    assert _LOOK_SECONDS > 0
    monkeypatch.setattr("riskpilot.live.server._LOOK_SECONDS", 0.0)


def fail_once(trial):
    """An evaluation that fails in one trial."""
    if trial.number == 3:
        trial.suggest_float("effort", 0.0, 1.0)
        raise RuntimeError("out of <memory>")
    return scenes.evaluate(trial)


def test_page_shows_a_search_under_way_from_its_first_trial_to_its_verdict():
    study = rp.create_study(scenes.PROBLEM, seed=0, study_name="a <b>name</b>")
    objective = rp.objective(study, fail_once)
    with served(study) as page:
        assert page.is_local
        first = text_of(page)
        assert "No trial has finished yet" in first
        assert "a &lt;b&gt;name" in first
        assert "<b>" not in first
        study.optimize(objective, n_trials=12, catch=RuntimeError)
        study.ask()
        searching = text_of(page)
        assert "● Searching · 11 finished, 1 running, 1 failed" in searching
        assert re.search(r"cost \d\.\d+ is expected to pass", searching)
        assert re.search(r"Trial \d+ would pass the test .* with a chance of \d\d %", searching)
        assert "RuntimeError: out of &lt;memory&gt;" in searching
        assert "1 trial under way" in searching
        assert "best chance to pass" in searching
        assert "Calibration data is sealed: no question has been put to it" in searching
        drawn = json.loads(re.search(r'id="page">(.*?)</script>', searching)[1])["figures"]
        names = {trace.get("name") for trace in drawn["figure-0"]["data"]}
        assert {"front", "limit", "region of interest", "expected to pass"} <= names
        selection = rp.select(study)
        after = text_of(page)
        assert "✓ Certified" in after
        assert "chance to pass" not in after
        assert "One more evaluation" not in after
        assert "All of delta has been spent" in after
        assert f"<dt>layers</dt><dd>{selection.config['layers']}</dd>" in after


def test_page_says_when_nothing_is_expected_to_pass_and_when_nothing_was_certified():
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.01)], "cost"), seed=0)
    study.optimize(rp.objective(study, scenes.evaluate), n_trials=8)
    with served(study) as page:
        assert "Nothing is expected to pass so far" in text_of(page)
        assert rp.select(study).config is None
        assert "Nothing could be certified" in text_of(page)


def test_page_says_when_calibration_examples_are_too_few():
    study = rp.create_study(scenes.PROBLEM, seed=0, n_calibration=3)

    def evaluate(trial):
        return rp.Evaluation(scenes.evaluate(trial).validation)

    study.optimize(rp.objective(study, evaluate), n_trials=16)
    with served(study) as page:
        shown = text_of(page)
    assert "Nothing can pass with so few calibration examples" in shown
    assert re.search(r"It takes at least \d+, however long the search goes on", shown)
    assert "xpected" not in re.sub(r"<script.*?</script>", "", shown, flags=re.DOTALL)


@pytest.mark.parametrize("is_guided", [True, False])
def test_only_what_the_guided_search_proposed_is_called_so(is_guided):
    sampler = None if is_guided else optuna.samplers.RandomSampler(0)
    study = rp.create_study(scenes.PROBLEM, seed=0, sampler=sampler)
    study.optimize(rp.objective(study, scenes.evaluate), n_trials=12)
    study.sampler = rp.GuidedSampler(scenes.PROBLEM, seed=0)  # as one who only looks loads it
    with served(study) as page:
        shown = text_of(page)
    drawn = json.loads(re.search(r'id="page">(.*?)</script>', shown)[1])["figures"]
    for figure in drawn.values():
        names = {trace.get("name") for trace in figure["data"]}
        assert ("proposed" in names, "evaluated" in names) == (is_guided, not is_guided)
    names = {trace.get("name") for trace in drawn["figure-0"]["data"]}
    assert "region of interest" in names
    assert ("reference point" in names) == is_guided
    whose = "" if is_guided else " that a GuidedSampler proposes"
    assert f"One more evaluation{whose} is expected to lower cost" in shown


def test_what_would_act_on_a_terminal_or_turn_the_text_is_shown_as_its_code():
    study = rp.create_study(scenes.PROBLEM, seed=0, study_name="turned \u202e")

    def evaluate(trial):
        trial.suggest_categorical("kind", ["\x1b[31mred"])
        return fail_once(trial)

    study.optimize(rp.objective(study, evaluate), n_trials=5, catch=RuntimeError)
    study.ask({"kind": optuna.distributions.CategoricalDistribution(["\x1b[31mred"])})
    with served(study) as page:
        shown = text_of(page)
    assert not any(character in shown for character in ("\x1b", "\\u001b", "\u202e"))
    assert shown.count("\\x1b[31mred") >= 3


def test_limits_left_open_and_trials_without_losses_are_said():
    study = rp.create_study(rp.Problem([rp.Risk("error", None)], "cost"), seed=0)
    study.optimize(rp.objective(study, scenes.evaluate), n_trials=3)
    study.tell(study.ask(), [0.1, 0.2])
    with served(study) as page:
        assert "Limits of this problem are still open" in text_of(page)
        assert "What will pass hangs on limits that are open" in text_of(page)
        assert "too early" not in text_of(page)
        assert "Left out: 1 finished trial (3)" in text_of(page)


def test_an_answer_is_computed_again_only_when_the_study_has_changed(monkeypatch):
    study = scenes.study(3)
    computed = []
    snapshot_of = live.server.snapshot_of
    monkeypatch.setattr(
        live.server, "snapshot_of", lambda now: computed.append(now) or snapshot_of(now)
    )
    with served(study) as page:
        _, headers, _ = ask(page)
        status, _, content = ask(page, **{"If-None-Match": headers["ETag"]})
        assert (status, content, len(computed)) == (304, b"", 1)
        study.enqueue_trial({"effort": 0.5, "layers": 1})
        assert ask(page, **{"If-None-Match": headers["ETag"]})[0] == 200
        assert len(computed) == 2


def test_a_trial_that_finishes_between_two_readings_does_not_break_the_page():
    study = rp.create_study(scenes.PROBLEM, seed=0)
    objective = rp.objective(study, scenes.evaluate)
    study.optimize(objective, n_trials=4)
    get_all_trials = study._storage.get_all_trials
    turn = threading.RLock()

    def finish_one_more(*args, **settings):
        """Read the trials, and have one more finish before they are read again."""
        trials = get_all_trials(*args, **settings)
        if threading.current_thread() is not threading.main_thread() and turn.acquire(False):
            study._storage.get_all_trials = get_all_trials
            study.optimize(objective, n_trials=1)
            study._storage.get_all_trials = finish_one_more
            turn.release()
        return trials

    with served(study) as page:
        study._storage.get_all_trials = finish_one_more
        for n in range(4, 8):
            assert f"{n} finished" in text_of(page)
        study._storage.get_all_trials = get_all_trials


def test_no_answer_holds_anything_of_calibration_losses():
    """Numbers that only calibration losses can lead to are in none of the answers."""
    study = rp.create_study(rp.Problem([rp.Risk("error", 0.5, p_value="betting")], "cost"), seed=0)
    planted = 0.123456789

    def evaluate(trial):
        x = trial.suggest_float("x", 0, 1)
        losses = np.full(200, 0.2 + 0.1 * x)
        return rp.Evaluation({"error": losses, "cost": 1 - x}, {"error": np.full(200, planted)})

    study.optimize(rp.objective(study, evaluate), n_trials=6)
    with served(study) as page:
        answers = b"".join(ask(page, path)[2] for path in PATHS)
        assert str(planted)[2:7].encode() not in answers
        digests = [d for t in study.trials for d in re.findall(r"[0-9a-f]{32,}", str(t.user_attrs))]
        assert digests
        assert not any(digest.encode() in answers for digest in digests)


def test_nothing_of_calibration_is_opened(monkeypatch):
    study = scenes.study(9)

    def refuse(*args):
        raise AssertionError("losses were opened")

    monkeypatch.setattr("riskpilot.study.kept.trial_losses._read", refuse)
    with served(study) as page:
        assert "9 finished" in text_of(page)


def test_only_reading_is_answered_and_nothing_is_written():
    study = scenes.study(3)
    before = [(trial.number, trial.state) for trial in study.trials], dict(study.user_attrs)
    with served(study) as page:
        for path in PATHS:
            status, headers, _ = ask(page, path)
            assert status == 200
            assert "script-src 'self';" in headers["Content-Security-Policy"]
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                assert ask(page, path, method=method)[0] == 405
        assert ask(page, "/nothing")[0] == 404
        assert ask(page, "/../pyproject.toml")[0] == 404
    assert before == (
        [(trial.number, trial.state) for trial in study.trials],
        dict(study.user_attrs),
    )


def test_a_page_of_somebody_else_that_was_pointed_here_is_refused():
    with served(scenes.study(1)) as page:
        for name in ("evil.example", "localhost.evil.example:80", "", "127.0.0.1.x", "a:b:c"):
            status, headers, content = ask(page, Host=name)
            assert (status, b"finished" in content) == (400, False), name
            assert "Content-Security-Policy" in headers
        for name in ("localhost", "LOCALHOST:8090", "127.0.0.1", "[::1]:8090", "[::1]"):
            assert ask(page, Host=name)[0] == 200, name


def test_a_study_that_cannot_be_read_any_more_is_said_and_not_an_error_of_the_server():
    study = scenes.study(2)
    with served(study) as page:
        study.set_user_attr("riskpilot:ledger", "changed")
        status, _, content = ask(page)
        assert status == 503
        assert b"was changed" in content


GONE = b"The file of the study was removed or replaced"


@pytest.mark.parametrize("name", ["study.db", "study.log"])
def test_a_file_that_was_moved_removed_or_made_anew_is_said(tmp_path, name):
    place, aside = tmp_path / name, tmp_path / "aside"

    def make(n_trials):
        study = rp.create_study(scenes.PROBLEM, storage=str(place), study_name="again", seed=0)
        study.optimize(rp.objective(study, scenes.evaluate), n_trials=n_trials)

    make(2)
    with served(rp.load_study(storage=str(place), study_name="again")) as page:
        assert "2 finished" in text_of(page)
        place.rename(aside)
        status, _, content = ask(page)
        assert (status, content[: len(GONE)]) == (503, GONE)
        aside.rename(place)
        assert "2 finished" in text_of(page)
        for remains in tmp_path.glob(f"{name}*"):
            if remains.is_file():
                remains.unlink()
        for n_trials in (0, 3):
            if n_trials:
                make(n_trials)
            status, _, content = ask(page)
            assert (status, content[: len(GONE)]) == (503, GONE)


@pytest.mark.parametrize("name", [None, "study.db", "study.log"])
def test_a_study_that_was_deleted_is_said_in_one_sentence(tmp_path, name):
    storage = None if name is None else str(tmp_path / name)
    study = rp.create_study(scenes.PROBLEM, storage=storage, study_name="gone", seed=0)
    with served(study) as page:
        assert "No trial has finished yet" in text_of(page)
        optuna.delete_study(study_name="gone", storage=study._storage)
        status, _, content = ask(page)
        assert status == 503
        assert content == b"The study 'gone' was deleted."


def test_a_storage_that_does_not_answer_is_not_waited_for(monkeypatch):
    study = scenes.study(2)

    def unreachable(study):
        assert is_hurried()
        raise StorageUnreachableError("has not worked for 10 minutes")

    with served(study) as page:
        monkeypatch.setattr(live.server, "still", unreachable)
        status, _, content = ask(page)
        assert (status, content) == (503, b"The storage of the study does not answer.")
        monkeypatch.undo()
        assert "2 finished" in text_of(page)


@pytest.mark.parametrize(
    ("host", "port"),
    [("127.0.0.1", -1), ("127.0.0.1", 70_000), ("", 0), ("x" * 300, 0), ("no.such.invalid", 0)],
)
def test_a_page_that_cannot_be_served_is_refused_in_one_sentence(host, port):
    with pytest.raises(rp.StudyError, match=r"cannot be served on host .* Take an address"):
        live.serve(scenes.study(1), host, port)


def test_a_page_for_everybody_is_known_as_such():
    with served(scenes.study(1), host="0.0.0.0") as page:
        assert not page.is_local
        assert socket.gethostname() in page.address


@pytest.mark.parametrize(("is_local", "warned"), [(True, False), (False, True)])
def test_command_says_where_it_serves_and_warns_when_others_may_read(
    tmp_path, monkeypatch, is_local, warned
):
    rp.create_study(scenes.PROBLEM, storage=str(tmp_path / "study.db"), study_name="adult")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)

    def serve(study, host, port, *, ready):
        assert (study.study_name, host, port) == ("adult", "127.0.0.1", 7)
        ready(live.Served("http://somewhere:7", is_local, lambda: None))
        raise KeyboardInterrupt

    monkeypatch.setattr(live, "serve", serve)
    command = ["live", str(tmp_path / "study.db"), "--study-name", "adult", "--port", "7", "--open"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0
    assert "Serving on http://somewhere:7" in done.stdout
    assert ("can read the page" in done.stderr) == warned
    assert opened == ["http://somewhere:7"]


@pytest.mark.parametrize("name", ["empty.db", "empty.log"])
def test_command_leaves_an_empty_file_as_it_is(tmp_path, name):
    place = tmp_path / name
    place.touch()
    done = CliRunner().invoke(app, ["live", str(place)])
    assert done.exit_code == 2
    assert "is empty. Give the path" in " ".join(done.stderr.split())
    assert place.stat().st_size == 0


def test_command_says_how_a_storage_without_studies_gets_one(tmp_path):
    place = str(tmp_path / "study.db")
    study = rp.create_study(scenes.PROBLEM, storage=place, study_name="gone")
    optuna.delete_study(study_name="gone", storage=study._storage)
    done = CliRunner().invoke(app, ["live", place])
    assert done.exit_code == 2
    assert "it holds none. Make one with riskpilot.create_study" in " ".join(done.stderr.split())


def test_command_names_the_extra_that_is_missing(tmp_path, monkeypatch):
    rp.create_study(scenes.PROBLEM, storage=str(tmp_path / "study.db"))
    monkeypatch.setitem(__import__("sys").modules, "riskpilot.live", None)
    done = CliRunner().invoke(app, ["live", str(tmp_path / "study.db")])
    assert done.exit_code == 2
    assert "pip install '.[live]'" in " ".join(done.stderr.split())


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a study is kept and its losses go."""
    if request.param == "sqlite":
        return {"storage": f"sqlite:///{tmp_path}/study.db"}
    address = request.getfixturevalue("postgres")
    return {"storage": address, "artifact_store": tmp_path / "losses"}


@contextlib.contextmanager
def searching(place, name, n_trials):
    """A search in a thread and with a storage of its own; each trial waits until it may go on."""
    turns = threading.Semaphore(0)

    def evaluate(trial):
        evaluation = fail_once(trial)
        assert turns.acquire(timeout=120)
        return evaluation

    def search():
        study = rp.load_study(study_name=name, **place)
        objective = rp.objective(study, evaluate)
        study.optimize(objective, n_trials=n_trials, catch=RuntimeError)

    thread = threading.Thread(target=search, daemon=True)
    thread.start()
    yield turns
    turns.release(n_trials)
    thread.join(120)
    assert not thread.is_alive()


LOOK = "document.dispatchEvent(new Event('visibilitychange'));"  # as who comes back to a page


@pytest.mark.browser
def test_page_renews_itself_while_a_study_runs_elsewhere(chrome, place):
    rp.create_study(scenes.PROBLEM, study_name="live", seed=0, **place)
    watched = rp.load_study(study_name="live", **place)
    says = "return document.body.innerText"

    def until(*words, at_once=LOOK):
        """Wait until the page shows all of these words, without being loaded again."""
        script = at_once + says
        browser.wait(chrome, lambda c: all(w in c.execute_script(script) for w in words), 120)

    with served(watched) as page:
        browser.view(chrome, 1100)
        browser.complaints(chrome)
        chrome.get(page.address)
        until("No trial has finished yet", "This page renews itself")
        chrome.execute_script("window.stayed = true")
        with searching(place, "live", n_trials=10) as turns:
            until("1 running", "1 trial under way", "at work", at_once="")
            turns.release()
            until("1 finished", "The trade-off")
            assert "Shaded" not in chrome.execute_script(says)
            turns.release(7)
            until("8 finished", "1 failed", "out of <memory>", "Expected to pass")
            drawn = (
                "return document.documentElement.dataset.drawn === 'yes' &&"
                "document.querySelectorAll('#figure-0 .legendtext').length > 5"
            )
            browser.wait(chrome, lambda c: c.execute_script(drawn), 120)
            until("Shaded: where the test is a close call")
            label = chrome.find_element("id", "figure-0").get_attribute("aria-label")
            assert re.search(r"The trade-off: .* 8 evaluated", label)
        rp.select(rp.load_study(study_name="live", **place))
        until("Certified", "9 finished", "All of delta has been spent")
        assert chrome.execute_script("return window.stayed")
        assert browser.barriers(chrome) == {}
        assert browser.complaints(chrome) == []
    until("The server of this page does not answer. This page shows the study as it was at")
    chrome.get("about:blank")
    browser.complaints(chrome)


@pytest.mark.browser
def test_a_page_whose_study_is_gone_says_so_on_top_and_its_clock_stops(chrome, monkeypatch):
    study = scenes.study(2)
    study.ask()
    clock = "return document.querySelector('time[data-began]').textContent"
    note = "return document.getElementById('lost').innerText"

    def until(script, condition):
        browser.wait(chrome, lambda c: condition(c.execute_script(LOOK + script)), 60)

    def unreachable(study):
        raise StorageUnreachableError("has not worked for 10 minutes")

    with served(study) as page:
        browser.view(chrome, 1100)
        chrome.get(page.address)
        until("return document.body.innerText", lambda text: "This page renews itself" in text)
        monkeypatch.setattr(live.server, "still", unreachable)
        until(note, lambda text: text.startswith("The storage of the study does not answer."))
        monkeypatch.setattr(live.server, "still", still)
        until(note, lambda text: not text)
        assert chrome.execute_script("return document.body.className") == "searching"
        optuna.delete_study(study_name=study.study_name, storage=study._storage)
        until(note, lambda text: "was deleted. This page shows the study as it was at" in text)
        shown = chrome.execute_script(clock)
        chrome.execute_script(
            "const now = Date.now(); Date.now = () => now + 7200e3;"  # two hours later
            "window.beats = 0; setInterval(() => { window.beats += 1; }, 1000)"
        )
        until("return window.beats", lambda beats: beats >= 2)
        assert chrome.execute_script(clock) == shown
        before = "return getComputedStyle(document.querySelector('.verdict'), '::before').content"
        assert chrome.execute_script(before) == '"Old: "'
        top = "return document.getElementById('lost').getBoundingClientRect().top"
        assert chrome.execute_script(top) < 60
        assert browser.barriers(chrome) == {}
    chrome.get("about:blank")
    browser.complaints(chrome)
