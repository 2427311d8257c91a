"""A watch as numbers for Prometheus, in its text format."""

from collections.abc import Callable
from pathlib import Path

from riskpilot.common import check_replaceable, reason_of, shown_safely, write_whole
from riskpilot.errors import PlotError, raise_alone
from riskpilot.watch.capital import wealth
from riskpilot.watch.findings import WatchedRisk
from riskpilot.watch.watching import Watch

# (name, help, what it is of a risk or a group); None where there is no number yet.
_OF_RISKS: tuple[tuple[str, str, Callable[[WatchedRisk], float | None]], ...] = (
    ("alarm", "Whether the limit is no longer kept.", lambda part: float(part.alarm)),
    ("risk", "The mean over all labels.", lambda part: part.estimate),
    ("risk_lower", "A lower bound on that mean at all times.", lambda part: part.lower),
    ("risk_upper", "An upper bound on that mean at all times.", lambda part: part.upper),
    ("limit", "The limit of the risk.", lambda part: part.limit),
    ("counted", "How many labels, or blocks of labels, count.", lambda part: float(part.count)),
)


def metrics(watch: Watch) -> str:
    """Write a watch as gauges, one for each risk and group, for the collector of text files.

    Parameters
    ----------
    watch : Watch
        The watch.

    Returns
    -------
    str
        Lines in the text format of Prometheus.
    """
    parts = [part for risk in watch.risks.values() for part in (risk.groups or (risk,))]
    record = watch.record
    shares = wealth(record.rule, record.state) / record.rule.threshold_array
    lines = [
        *_head("labels", "How many labels were taken.", "counter"),
        f"riskpilot_watch_labels {watch.n_labels}",
        *_head("alarms", "How many limits, of risks or groups, are no longer kept."),
        f"riskpilot_watch_alarms {len(watch.alarms)}",
    ]
    for name, words, number in _OF_RISKS:
        lines += _head(name, words)
        for part in parts:
            value = number(part)
            if value is not None:
                lines.append(f"riskpilot_watch_{name}{_labels(part)} {value!r}")
    lines += _head("evidence", "Evidence against the limit; an alarm is raised at 1.")
    lines += [
        f"riskpilot_watch_evidence{_labels(part)} {float(share)!r}"
        for part, share in zip(parts, shares, strict=True)
    ]
    return "\n".join(lines) + "\n"


def write_metrics(watch: Watch, path: str | Path) -> Path:
    """Write a watch for Prometheus to a file, whole or not at all, and return where it is."""
    check_replaceable(path, "metrics", PlotError)
    try:
        return write_whole(path, metrics(watch))
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            PlotError(
                f"The metrics cannot be written to {shown_safely(path)}: {reason_of(error)}. "
                f"Check that the folder exists, can be written and has space."
            )
        )


def _head(name: str, words: str, kind: str = "gauge") -> list[str]:
    """Write the two lines that come before a metric."""
    return [f"# HELP riskpilot_watch_{name} {words}", f"# TYPE riskpilot_watch_{name} {kind}"]


def _labels(part: WatchedRisk) -> str:
    """Write the labels of a metric."""
    return f'{{risk="{_escaped(part.name)}",group="{_escaped(part.group or "")}"}}'


def _escaped(text: str) -> str:
    """Escape a text for a label.

    >>> _escaped('a "b"')
    'a \\\\"b\\\\"'
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
