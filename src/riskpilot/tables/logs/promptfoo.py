"""Results of promptfoo, as JSON: several runs, one for each provider and prompt."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from riskpilot.common import canonical
from riskpilot.errors import TableError, shown
from riskpilot.tables.logs.log_files import LogFile
from riskpilot.tables.logs.runs import LoggedSample, Run, as_number, as_text, said, with_errors

TOOL = "promptfoo"
VERSIONS = (3,)
_HEAD = re.compile(r'\s*\{\s*"evalId"\s*:')
_ENDED_IN_AN_ERROR = 2  # what promptfoo writes as the reason of such a failure


def recognises(path: Path, head: str) -> bool:
    """Say whether a file is such a log, by its name and how it begins."""
    return path.suffix.lower() == ".json" and _HEAD.match(head) is not None


def read(path: Path) -> list[Run]:
    """Read a file of results."""
    log = LogFile(path, TOOL)
    data = log.parsed(log.text())
    log.check_version(log.field(data, "results", "version"), VERSIONS)
    results = log.part(data, "results")
    prompts = log.parts(results, "prompts")
    answers: dict[int, list[Mapping[str, Any]]] = {}
    for answer in log.parts(results, "results"):
        answers.setdefault(_place(log, answer, len(prompts)), []).append(answer)
    if not answers:
        raise log.unlike("it has no results")
    runs = [
        Run(
            path.name,
            _config(log, prompts[place], answers[place][0]),
            [_sample(log, answer) for answer in answers[place]],
        )
        for place in sorted(answers)
    ]
    _check_apart(log, runs)
    return runs


def _place(log: LogFile, answer: Mapping[str, Any], n_prompts: int) -> int:
    """Return which of the prompts, each with its provider, an answer belongs to."""
    place = log.field(answer, "promptIdx")
    if type(place) is not int or not 0 <= place < n_prompts:
        raise log.unlike(f"promptIdx is none of its {n_prompts} prompts but {shown(place)}")
    return place


def _config(log: LogFile, prompt: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, Any]:
    """Name the provider, by its label where it has one, and the prompt."""
    provider = log.part(answer, "provider")
    name = provider.get("label") or log.field(answer, "provider", "id")
    return said({"provider": name, "prompt": log.field(prompt, "raw")})


def _check_apart(log: LogFile, runs: list[Run]) -> None:
    """Refuse providers that differ in their settings and not in their names: results do not say
    which is which, and their answers would be taken for repeats."""
    names = [canonical(dict(run.config)) for run in runs]
    twice = next(
        (run for run, name in zip(runs, names, strict=True) if names.count(name) > 1), None
    )
    if twice is not None:
        raise TableError(
            f"{log.name!r}: every provider needs a name of its own, but there are two called "
            f"{shown(twice.config['provider'])} with the same prompt. Give each of them a label in "
            f"the configuration of {TOOL}."
        )


def _sample(log: LogFile, answer: Mapping[str, Any]) -> LoggedSample:
    """Read one answer. Repeats of a test have places of their own in the file, so that a test is
    known by its variables and assertions."""
    test = log.part(answer, "testCase")
    example = as_text(said({name: test.get(name) for name in ("vars", "assert")}))
    if answer.get("failureReason") == _ENDED_IN_AN_ERROR:
        raise TableError(
            f"{log.name!r}: every test needs a score, but {shown(example)} ended in an error. Run "
            f"the evaluation again, or leave the file out."
        )
    named = log.part(answer, "namedScores")
    measured = {
        **{name: as_number(value) for name, value in named.items()},
        "success": as_number(log.field(answer, "success")),
        "score": as_number(answer.get("score")),
    }
    scores = {name: number for name, number in measured.items() if number is not None}
    return LoggedSample(example, {}, {**_spent(log, answer), **with_errors(scores, ["success"])})


def _spent(log: LogFile, answer: Mapping[str, Any]) -> dict[str, float]:
    """Read what an answer took: cost, tokens, and seconds."""
    milliseconds = as_number(answer.get("latencyMs"))
    spent = {
        "cost": as_number(answer.get("cost")),
        "tokens": as_number(log.part(answer, "tokenUsage").get("total")),
        "seconds": None if milliseconds is None else milliseconds / 1000,
    }
    return {name: number for name, number in spent.items() if number is not None}
