"""A watch survives: files are whole, changes are noticed, nothing is counted twice, one writes."""

import json
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from watch_worker import labels

import riskpilot as rp
from tests.kits.watched import CASES

WORKER = Path(__file__).with_name("watch_worker.py")


@pytest.fixture(scope="module")
def certificate():
    return CASES["mean"].certificate()


@pytest.fixture
def watch(certificate):
    made = rp.Watch(certificate)
    made.update({"error": np.random.default_rng(0).random(500) < 0.3}, ids=range(500), at="then")
    return made


def content(watch):
    return json.loads(watch.record.to_json()[0])


@pytest.mark.parametrize("name", CASES)
def test_a_watch_that_was_saved_goes_on_to_the_last_bit(name, tmp_path):
    case, rng = CASES[name], np.random.default_rng(1)
    watch, path = rp.Watch(case.certificate()), tmp_path / "watch.json"
    watch.update(case.draw(rng, 300, False), at="then")
    assert watch.save(path) == path
    other, more = rp.Watch.load(path), case.draw(rng, 900, True)
    for each in (watch, other):
        each.update(more, at="now")
    assert content(watch) == content(other)
    assert watch.alarms == other.alarms
    assert str(watch) == str(other)


def test_a_changed_file_is_refused(watch, tmp_path):
    path = watch.save(tmp_path / "watch.json")
    data = json.loads(path.read_text())
    data["watch"]["capital"][0][0] = 1e-9
    path.write_text(json.dumps(data))
    with pytest.raises(rp.CertificateError, match="changed after it was written"):
        rp.Watch.load(path)


def test_a_file_of_another_format_is_refused(watch, tmp_path):
    path = watch.save(tmp_path / "watch.json")
    path.write_text(path.read_text().replace("riskpilot-watch-file/1", "riskpilot-watch-file/9"))
    with pytest.raises(rp.CertificateError, match="riskpilot-watch-file/9"):
        rp.Watch.load(path)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "no JSON", '{"schema": "riskpilot-watch-file/1"}']
)
def test_what_is_no_watch_is_refused(text, tmp_path):
    path = tmp_path / "watch.json"
    path.write_text(text)
    with pytest.raises(rp.CertificateError):
        rp.Watch.load(path)


@pytest.mark.parametrize(
    "text",
    ["mine", "example,error\n1,0\n", '{"a": 1}', "[1, 2]", '{"schema": "riskpilot-watch-file/1", '],
)
def test_a_watch_takes_the_place_of_no_other_file(text, watch, tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(text)
    with pytest.raises(rp.CertificateError, match=r"file of its own|saved over itself alone"):
        watch.save(path)
    assert path.read_text() == text


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(rp.CertificateError, match=r"nowhere\.json"):
        rp.Watch.load(tmp_path / "nowhere.json")
    with pytest.raises(rp.CertificateError, match="folder"):
        rp.Watch.load(tmp_path / "no" / "such" / "folder.json")


def test_a_replaced_file_is_not_written_over(watch, certificate, tmp_path):
    path = watch.save(tmp_path / "watch.json")
    slow = rp.Watch.load(path)
    watch.update({"error": [0, 1]})
    watch.save(path)
    slow.update({"error": [1, 1]})
    with pytest.raises(rp.CertificateError, match="another process went on with it"):
        slow.save(path)
    with pytest.raises(rp.CertificateError, match="another process went on with it"):
        rp.Watch(certificate).save(path)
    assert content(rp.Watch.load(path)) == content(watch)


def test_a_watch_may_be_saved_again_and_elsewhere(watch, tmp_path):
    for _ in range(2):
        for name in ("one.json", "other.json"):
            watch.save(tmp_path / name)
        watch.update({"error": [0]})
    assert rp.Watch.load(tmp_path / "one.json").n_labels == 501


def test_a_block_that_fails_leaves_the_watch_as_it_was(certificate, tmp_path):
    path = tmp_path / "watch.json"
    with rp.Watch.open(path, certificate) as watch:
        watch.update({"error": [0, 1]})

    def fails():
        with rp.Watch.open(path) as watch:
            watch.update({"error": [1] * 50})
            raise RuntimeError("the power goes out")

    with pytest.raises(RuntimeError, match="power"):
        fails()
    assert rp.Watch.load(path).n_labels == 2


def test_a_watch_is_that_of_its_certificate(watch, tmp_path):
    path = watch.save(tmp_path / "watch.json")
    other = CASES["quantile"].certificate()
    with (
        pytest.raises(rp.CertificateError, match="of the certificate"),
        rp.Watch.open(path, other),
    ):
        pass


def test_one_writer_at_a_time(certificate, tmp_path):
    path = tmp_path / "watch.json"

    def feed(first):
        for i in range(10):
            with rp.Watch.open(path, certificate) as watch:
                watch.update({"error": [0]}, ids=[first + i])

    threads = [threading.Thread(target=feed, args=(1_000 * k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rp.Watch.load(path).n_labels == 30


def test_processes_that_write_at_once_lose_nothing(certificate, tmp_path):
    path, saved = tmp_path / "watch.json", certificate.save(tmp_path / "certificate.json")
    command = [sys.executable, str(WORKER), str(path), str(saved), "200"]
    workers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [worker.wait(120) for worker in workers] == [0, 0]
    watch = rp.Watch.load(path)
    assert watch.n_labels == 200
    assert watch.risks["error"].estimate == pytest.approx(labels(200).mean())


def test_a_watch_that_is_killed_again_and_again_counts_every_label_once(certificate, tmp_path):
    path, saved = tmp_path / "watch.json", certificate.save(tmp_path / "certificate.json")
    n, rng = 400, np.random.default_rng(2)
    command = [sys.executable, str(WORKER), str(path), str(saved), str(n)]
    for _ in range(6):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            for _ in range(rng.integers(1, 12)):
                worker.stdout.readline()  # it has counted some; now it dies in the midst of more
            worker.send_signal(signal.SIGKILL)
    if path.exists():
        rp.Watch.load(path)  # whole, whenever the worker died
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    found, expected = rp.Watch.load(path), rp.Watch(certificate)
    expected.update({"error": labels(n)}, ids=np.arange(n), at="then")
    assert found.n_labels == n
    assert found.alarms == expected.alarms
    assert content(found)["watch"] == content(expected)["watch"]


def make_study(storage=None):
    problem = rp.Problem([rp.Risk("error", 0.2)], "cost")
    study = rp.create_study(problem, storage=storage, seed=0)
    draws = np.random.default_rng(3).random((2, 500)) < 0.1
    made = rp.Evaluation({"error": draws[0], "cost": 1.0}, {"error": draws[1]})
    study.optimize(rp.objective(study, lambda trial: made), n_trials=1)
    return study


@pytest.mark.parametrize("where", ["memory", "sqlite", "journal"])
def test_a_watch_may_lie_in_the_storage_of_its_study(where, tmp_path):
    places = {"memory": None, "sqlite": f"sqlite:///{tmp_path}/study.db"}
    storage = places.get(where, str(tmp_path / "study.log"))
    study = make_study(storage)
    with rp.Watch.open(study, rp.select(study).certificate) as watch:
        watch.update({"error": [0, 1, 0]}, at="then")
    again = rp.Watch.load(study if storage is None else storage)
    assert content(again) == content(watch)
    watch.update({"error": [0]})
    watch.save(study)
    with pytest.raises(rp.CertificateError, match="another process"):
        again.save(study)


def test_a_study_without_a_watch_says_so():
    with pytest.raises(rp.CertificateError, match="There is no watch in the study"):
        rp.Watch.load(make_study())


@pytest.mark.parametrize("place", [None, 3, ["watch.json"]])
def test_what_is_no_place_is_refused(place, watch):
    with pytest.raises(rp.CertificateError, match="is kept in a file"):
        watch.save(place)
