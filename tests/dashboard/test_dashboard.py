"""Optuna's dashboard shows riskpilot's figure of a study that is still running."""

import contextlib
import json
import threading
import urllib.request

import optuna
import pytest

import riskpilot as rp
from riskpilot import dashboard
from tests.pictures import browser, scenes


@contextlib.contextmanager
def served(storage):
    started, box = threading.Event(), []

    def ready(server):
        box.append(server)
        started.set()

    thread = threading.Thread(
        target=dashboard.serve, args=(storage,), kwargs={"port": 0, "ready": ready}
    )
    thread.start()
    assert started.wait(30)
    try:
        yield f"http://127.0.0.1:{box[0].server_port}"
    finally:
        box[0].shutdown()
        thread.join(30)


def figures(address, study_id):
    with urllib.request.urlopen(f"{address}/api/studies/{study_id}") as answer:
        graphs = json.load(answer)["plotly_graph_objects"]
    return {graph["id"]: json.loads(graph["graph_object"]) for graph in graphs}


@pytest.fixture
def running(tmp_path):
    """A study that runs one more trial whenever it is told to."""
    study = rp.create_study(
        scenes.PROBLEM, storage=f"sqlite:///{tmp_path}/study.db", study_name="live", seed=0
    )
    objective = rp.objective(study, scenes.evaluate)
    study.optimize(objective, n_trials=8)
    yield study, lambda n: study.optimize(objective, n_trials=n)
    study._storage.remove_session()
    study._storage._backend.engine.dispose()


def test_figure_is_renewed_when_a_trial_has_finished(running):
    study, go_on = running
    with served(study._storage) as address:
        first = figures(address, study._study_id)[dashboard.FIGURE_ID]
        go_on(2)
        second = figures(address, study._study_id)[dashboard.FIGURE_ID]
    assert "8 evaluated" in first["layout"]["title"]["text"]
    assert "10 evaluated" in second["layout"]["title"]["text"]


def test_figure_knows_nothing_of_calibration(running, monkeypatch):
    study, _ = running

    def refuse(*args):
        raise AssertionError("calibration was opened")

    monkeypatch.setattr("riskpilot.study.kept.trial_losses._read", refuse)
    figure = dashboard.study_figure(study)
    assert not {t.name for t in figure.data} & {"certified", "chosen", "tested, not certified"}


def test_studies_of_others_and_empty_ones_are_left_alone(tmp_path):
    storage = optuna.storages.InMemoryStorage()
    other = optuna.create_study(storage=storage, study_name="other")
    empty = rp.create_study(
        scenes.PROBLEM, storage=storage, study_name="empty", artifact_store=tmp_path
    )
    assert dashboard.study_figure(empty) is None
    with served(storage) as address:
        assert figures(address, other._study_id) == {}
        assert figures(address, empty._study_id) == {}


@pytest.mark.parametrize("name", ["study.db", "study.log"])
def test_a_file_is_served_as_the_help_says(name, tmp_path):
    place = str(tmp_path / name)
    rp.create_study(scenes.PROBLEM, storage=place, study_name="live", seed=0)
    with served(place) as address, urllib.request.urlopen(f"{address}/api/studies") as answer:
        assert "live" in answer.read().decode()


@pytest.mark.parametrize("form", ["{}.db", "{}.log", "sqlite:///{}.db"])
def test_a_file_that_is_not_there_is_refused_and_not_made(form, tmp_path):
    with pytest.raises(rp.StudyError, match="does not exist"):
        dashboard.application(form.format(tmp_path / "none"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("host", "port"),
    [("127.0.0.1", -1), ("127.0.0.1", 70_000), ("", 0), ("x" * 300, 0), ("no.such.invalid", 0)],
)
def test_a_page_that_cannot_be_served_is_refused_in_one_sentence(host, port):
    with pytest.raises(rp.StudyError, match=r"cannot be served on host .*[^.]\. Take an address"):
        dashboard.serve(optuna.storages.InMemoryStorage(), host, port)


def test_callback_stores_the_figure_for_another_server(running):
    study, _ = running
    dashboard.update_figure(study, None)
    assert any(dashboard.FIGURE_ID in key for key in study._storage.get_study_system_attrs(1))


@pytest.mark.browser
def test_page_of_a_running_study_draws_the_figure_and_keeps_up(chrome, running):
    study, go_on = running
    title = (
        "const e = document.getElementById('user-defined-plot:riskpilot-trade-off');"
        "return e && e.querySelector('.gtitle') && e.querySelector('.gtitle').textContent"
    )
    with served(study._storage) as address:
        browser.view(chrome, 1300)
        browser.complaints(chrome)
        page = f"{address}/dashboard/studies/{study._study_id}"
        chrome.get(page)
        browser.wait(chrome, lambda c: "8 evaluated" in (c.execute_script(title) or ""), 60)
        go_on(1)
        chrome.refresh()
        browser.wait(chrome, lambda c: "9 evaluated" in (c.execute_script(title) or ""), 60)
        assert browser.complaints(chrome) == []
        chrome.get("about:blank")
