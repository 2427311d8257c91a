"""Logs of lm-evaluation-harness: what ``--log_samples`` writes, with the results beside it."""

import glob
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from riskpilot.errors import TableError
from riskpilot.tables.logs.log_files import LogFile
from riskpilot.tables.logs.runs import LoggedSample, Run, as_number, as_text, said, with_errors

TOOL = "lm-evaluation-harness"
VERSIONS = ("0.4",)
_HEAD = re.compile(r'\s*\{\s*"doc_id"\s*:')
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>[^_]+)\.jsonl")


def recognises(path: Path, head: str) -> bool:
    """Say whether a file is such a log, by its name and how it begins."""
    return path.suffix.lower() == ".jsonl" and _HEAD.match(head) is not None


def read(path: Path) -> list[Run]:
    """Read the samples of one task: one run."""
    log = LogFile(path, TOOL)
    name = _NAME.fullmatch(path.name)
    if name is None:
        raise log.unlike("its name is not samples_TASK_DATE.jsonl")
    task = name["task"]
    results = _results(log, name["date"])
    lines = [log.parsed(line) for line in log.text().splitlines() if line.strip()]
    samples = _samples(log, log.parts({"lines": lines}, "lines"), _better(log, results, task))
    expected = as_number(log.part(results, "n-samples", task).get("effective"))
    if expected is not None and expected != len(samples):
        raise log.cut(f"it has {len(samples)} of {expected:.0f} samples")
    return [Run(path.name, _config(log, results, task), samples)]


def _results(log: LogFile, date: str) -> Mapping[str, Any]:
    """Read the results of the same evaluation, which say what the samples do not."""
    found = sorted(log.path.parent.glob(f"*_{glob.escape(date)}.json"))
    if len(found) != 1:
        raise TableError(
            f"{log.name!r} does not say which model answered; the file of results does, which "
            f"{TOOL} writes into the same folder as results_{date}.json, but there "
            f"{'is none' if not found else f'are {len(found)}'}. Put the one that belongs to it "
            f"there."
        )
    results = LogFile(found[0], TOOL)
    data = results.part(results.parsed(results.text()))
    version = as_text(results.field(data, "lm_eval_version"))
    results.check_version(".".join(version.split(".")[:2]), VERSIONS)
    return data


def _better(log: LogFile, results: Mapping[str, Any], task: str) -> Mapping[str, Any]:
    """Say of every metric of a task whether it is better when larger."""
    return log.part(results, "higher_is_better", task)


def _samples(
    log: LogFile, lines: list[Mapping[str, Any]], better: Mapping[str, Any]
) -> list[LoggedSample]:
    """Join the lines of every example: there is one for each filter of its answer."""
    filters = {as_text(line.get("filter")) for line in lines}
    scores: dict[str, dict[str, float]] = {}
    contents: dict[str, str] = {}
    good = set()
    for line in lines:
        example = as_text(log.field(line, "doc_id"))
        contents[example] = as_text(log.field(line, "doc_hash"))
        measured = scores.setdefault(example, {})
        for metric, is_better in better.items():
            number = as_number(line.get(metric))
            column = metric if len(filters) == 1 else f"{metric}.{as_text(line.get('filter'))}"
            if number is not None:
                measured[column] = number
            if is_better:
                good.add(column)
    return [
        LoggedSample(example, {"doc": contents[example]}, with_errors(measured, sorted(good)))
        for example, measured in scores.items()
    ]


def _config(log: LogFile, results: Mapping[str, Any], task: str) -> dict[str, Any]:
    """Collect what makes up the configuration: model, task, prompts, sampling."""
    asked, defined = log.part(results, "config"), log.part(results, "configs", task)
    return said(
        {
            "model": log.field(asked, "model"),
            "model_args": asked.get("model_args"),
            "task": task,
            "num_fewshot": log.part(results, "n-shot").get(task),
            "description": defined.get("description") or None,
            "prompt": defined.get("doc_to_text"),
            "generation": defined.get("generation_kwargs"),
            "gen_kwargs": asked.get("gen_kwargs"),
            "system_instruction": results.get("system_instruction"),
            "chat_template": results.get("chat_template_sha"),
            "fewshot_as_multiturn": results.get("fewshot_as_multiturn"),
        }
    )
