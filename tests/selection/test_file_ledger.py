"""The ledger beside a table: every question is counted, and says so as a study's does."""

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import riskpilot as rp
from riskpilot.cli.app import app
from riskpilot.errors import TableError
from riskpilot.selection import ledger_beside, read_ledger
from riskpilot.study.questions.audit import audit
from riskpilot.tables import save_losses


def table(folder: Path, *, split: bool = True) -> Path:
    rng = np.random.default_rng(0)
    lines = ["config,example,error,cost" + (",split" if split else "")]
    for config, risk in (("a", 0.05), ("b", 0.3)):
        for i in range(400):
            half = f",{'validation' if i % 2 else 'calibration'}" if split else ""
            lines.append(f"{config},{i},{int(rng.random() < risk)},{ord(config)}{half}")
    path = folder / "losses.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def ask(path: Path, limit: float, **more: object) -> rp.Selection:
    problem = rp.Problem([rp.Risk("error", limit)], "cost")
    return rp.select_from_frame(problem, path, config="config", example="example", **more)  # type: ignore[arg-type]


def test_questions_are_counted_and_the_same_one_keeps_its_number(tmp_path: Path) -> None:
    path = table(tmp_path)
    first, second, again = ask(path, 0.2), ask(path, 0.15), ask(path, 0.2)
    assert [s.certificate.use["number"] for s in (first, second, again)] == [1, 2, 1]
    assert first.certificate.digest == again.certificate.digest
    assert "question" not in first.certificate.promise
    assert "This is question 2 to the same calibration data" in second.certificate.promise
    assert [entry["use"] for entry in read_ledger(ledger_beside(path))] == [1, 2]
    for selection in (first, second):
        saved = selection.certificate.save(tmp_path / "c.json")
        assert audit(saved, str(path)).ok


def ask_often(ledger: Path, limits: list[float]) -> list[int]:
    errors = np.random.default_rng(0).random((1, 200)) < 0.05
    return [
        rp.select_from_losses(
            rp.Problem([rp.Risk("error", limit)], "cost"),
            validation={"error": errors[:, :100], "cost": [1.0]},
            calibration={"error": errors[:, 100:]},
            ledger=ledger,
        ).certificate.use["number"]
        for limit in limits
    ]


def test_those_who_ask_at_once_lose_no_question(tmp_path: Path) -> None:
    # The lock keeps threads apart by the same means as processes: each opens the file itself.
    ledger = tmp_path / "ledger.json"
    limits = np.linspace(0.1, 0.4, 32).tolist()
    with ThreadPoolExecutor(4) as threads:
        asked = [threads.submit(ask_often, ledger, limits[i::4]) for i in range(4)]
        numbers = [number for future in asked for number in future.result()]
    assert sorted(numbers) == list(range(1, 33))
    assert [entry["use"] for entry in read_ledger(ledger)] == list(range(1, 33))


def test_a_question_that_was_put_before_needs_no_writing(tmp_path: Path) -> None:
    path = table(tmp_path)
    first = ask(path, 0.2)
    lock = tmp_path / "losses.csv.ledger.json.lock"
    lock.unlink()
    lock.mkdir()  # nobody can hold it now
    assert ask(path, 0.2).certificate.digest == first.certificate.digest
    with pytest.raises(TableError, match="cannot be written"):
        ask(path, 0.15)


def test_a_ledger_that_lost_the_question_is_a_difference(tmp_path: Path) -> None:
    path = table(tmp_path)
    ask(path, 0.2)
    saved = ask(path, 0.15).certificate.save(tmp_path / "c.json")
    ledger = ledger_beside(path)
    ledger.write_text(json.dumps(json.loads(ledger.read_text())[:1]))
    found = audit(saved, str(path))
    assert any("no such question" in sentence for sentence in found.differences)


@pytest.mark.parametrize("change", ["use", "problem", "previous"])
def test_a_changed_ledger_is_refused(change: str, tmp_path: Path) -> None:
    path = table(tmp_path)
    ask(path, 0.2)
    ask(path, 0.15)
    ledger = ledger_beside(path)
    entries = json.loads(ledger.read_text())
    entries[1][change] = 1 if change == "use" else "other"
    ledger.write_text(json.dumps(entries))
    with pytest.raises(TableError, match="was changed"):
        ask(path, 0.1)
    ledger.write_text("not JSON")
    with pytest.raises(TableError, match="was changed"):
        ask(path, 0.1)


def test_a_drawn_split_is_drawn_once(tmp_path: Path) -> None:
    path = table(tmp_path, split=False)
    one, other = ask(path, 0.2, split=0.5), ask(path, 0.15, split=0.5)
    assert one.certificate.table == other.certificate.table
    assert ask(path, 0.2, split=0.5).certificate.digest == one.certificate.digest
    with pytest.raises(TableError, match=r"drawn with a share of 0\.5 .* now it is 0\.4"):
        ask(path, 0.2, split=0.4)
    assert ask(path, 0.2, split=0.4, seed=3).certificate.n_validation == 160


def test_no_ledger_is_kept_where_none_is_wanted(tmp_path: Path) -> None:
    path = table(tmp_path)
    assert ask(path, 0.2, ledger=None).certificate.use["ledger"] is None
    assert not ledger_beside(path).exists()
    elsewhere = tmp_path / "elsewhere.json"
    ask(path, 0.2, ledger=elsewhere)
    assert len(read_ledger(elsewhere)) == 1
    with pytest.raises(TableError, match="cannot be written"):
        ask(path, 0.2, ledger=tmp_path / "nowhere" / "ledger.json")


def test_the_command_counts_questions_to_every_kind_of_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    archive = save_losses(
        tmp_path / "losses.npz",
        validation={"error": rng.random((2, 200)) < 0.05, "cost": [2.0, 1.0]},
        calibration={"error": rng.random((2, 200)) < 0.05},
    )
    for path in (archive, table(tmp_path)):
        numbers = []
        for limit, more in (("0.2", []), ("0.15", []), ("0.17", ["--no-ledger"])):
            options = ["-r", f"error<={limit}", "-m", "cost", "--json", *more]
            result = CliRunner().invoke(app, ["select", str(path), *options])
            assert result.exit_code == 0, result.output
            numbers.append(json.loads(result.stdout)["certificate"]["use"]["number"])
        assert numbers == [1, 2, 1]


def test_a_glob_has_a_ledger_which_it_does_not_read_as_a_table(tmp_path: Path) -> None:
    """A share that was drawn anew at every question could be drawn until something passes."""
    with table(tmp_path, split=False).open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for part, some in enumerate((rows[:400], rows[400:])):
        (tmp_path / f"part-{part}.json").write_text(json.dumps(some))
    path = tmp_path / "*.json"
    one, other, again = (ask(path, limit, split=0.5) for limit in (0.2, 0.15, 0.2))
    assert list(tmp_path.glob("*.ledger.json")) == [ledger_beside(path)]
    assert one.certificate.table == other.certificate.table
    assert one.certificate.digest == again.certificate.digest
    assert [s.certificate.use["number"] for s in (one, other)] == [1, 2]
    assert audit(other.certificate.save(tmp_path / "certificate"), str(path)).ok


def test_a_file_whose_name_looks_like_a_glob_has_its_ledger_beside_it(tmp_path: Path) -> None:
    path = table(tmp_path).rename(tmp_path / "losses[1].csv")
    ask(path, 0.2)
    assert (tmp_path / "losses[1].csv.ledger.json").exists()
