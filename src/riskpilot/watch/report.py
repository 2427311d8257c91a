"""One self-contained page that shows a watch to people: the verdict first, then the numbers."""

import html
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np

from riskpilot.common import confidence, exact, how_many, percent
from riskpilot.plots import (
    Course,
    PageFigure,
    evidence_course,
    risk_course,
    sections,
    web_page,
    write_page,
)
from riskpilot.watch.capital import wealth
from riskpilot.watch.estimates import segment_estimates
from riskpilot.watch.findings import WatchAlarm, WatchedRisk, between
from riskpilot.watch.promises import Stream
from riskpilot.watch.state import segment_between
from riskpilot.watch.watching import Watch

_STRETCHES = 12  # at most so many points are on a line
_MARKS = {None: "", True: "✓ ", False: "✗ "}  # before a verdict: open, good, bad
_LINES = 6  # of so many groups; the page says what it leaves out


def write_report(watch: Watch, path: str | Path) -> Path:
    """Write the page of a watch, which needs no network, and return where it is."""
    return write_page(path, _page(watch), "report")


def _page(watch: Watch) -> str:
    """Write the page as HTML."""
    figures, release = _figures(watch), version("riskpilot")
    subject, last = watch.record.subject, watch.record.history.times[-1:]
    until = f", until {last[0]}" if last else ""
    good = not watch.alarm if watch.n_labels else None
    verdict = {None: "No labels yet", True: "No alarm", False: "Alarm"}[good]
    begun = " open" if good is None else ""
    body = f"""<header>
<p class="verdict{begun}">{_MARKS[good]}{verdict}</p>
<h1>{_escaped(_headline(watch))}</h1>
<div class="promise{begun}"><p>{_escaped(_sentence(watch))}</p>
<p>The promise that is watched: {_escaped(subject.promise)}</p></div>
</header>
<main>
{_alarms(watch.alarms)}
<h2>How each risk stands</h2><div class="cards">{_cards(watch)}</div>
<p class="note">Dark bar: the mean over all labels. Light bar: up to its upper bound. Line: the
limit. All bounds on this page hold together and at all times with probability
at least {confidence(watch.delta)}.</p>
{sections(figures)}
{_what_is_assumed(watch)}
</main>
<footer>Made by riskpilot {_escaped(release)}{_escaped(until)}. Certificate
{_escaped(subject.certificate[:16])}…</footer>"""
    title = f"{verdict}: {subject.problem.limits_in_words}"
    return web_page(title=title, good=good, version=release, body=body, figures=figures)


def _headline(watch: Watch) -> str:
    """Write the verdict as a headline."""
    broken = list(dict.fromkeys(alarm.risk for alarm in watch.alarms))
    if broken:
        return f"{' and '.join(broken)}: the limit was shown to be broken"
    if not watch.n_labels:
        return "Nothing is known of any limit yet"
    return f"Nothing shows that a limit is broken, on {how_many(watch.n_labels, 'label')}"


def _sentence(watch: Watch) -> str:
    """Say what the verdict means to somebody who decides."""
    chance = percent(watch.delta)
    if watch.alarm:
        return (
            f"Do not rely on the promise any more. If every limit had been kept at every moment, "
            f"the chance of an alarm like this, at any time since the watch began, would have been "
            f"at most {chance}."
        )
    return (
        f"No alarm is no proof that every limit is kept: a small or recent change takes labels to "
        f"show. The chance of any false alarm over the whole life of this watch is at most "
        f"{chance}."
    )


def _alarms(alarms: Sequence[WatchAlarm]) -> str:
    """List the alarms, first one first."""
    if not alarms:
        return ""
    cards = "".join(_alarm_card(alarm) for alarm in alarms)
    return f'<section><h2>The alarms</h2><div class="cards">{cards}</div></section>'


def _alarm_card(alarm: WatchAlarm) -> str:
    """Show one alarm: since when, how high, and when it was noticed."""
    of = "" if alarm.group is None else f", {alarm.group}"
    since = {} if alarm.change_time is None else {"which came on": alarm.change_time}
    rows = {
        "above its limit since label": f"about {alarm.change + 1:,}",
        **since,
        "noticed at label": f"{alarm.label:,}",
        "noticed on": alarm.time,
        "mean since then, when noticed": _number(alarm.estimate),
        "bounds": between(alarm.lower, alarm.upper),
        "limit": exact(alarm.limit),
    }
    return f'<div class="card"><h3>{_escaped(alarm.what)}{_escaped(of)}</h3>{_list(rows)}</div>'


def _list(rows: Mapping[str, object]) -> str:
    """List names and values."""
    listed = "".join(f"<dt>{_escaped(k)}</dt><dd>{_escaped(v)}</dd>" for k, v in rows.items())
    return f"<dl>{listed}</dl>"


def _cards(watch: Watch) -> str:
    """Show every risk on a scale, with its numbers and those of its groups."""
    return "".join(_card(risk) for risk in watch.risks.values())


def _card(risk: WatchedRisk) -> str:
    """Show one risk on a scale."""
    low = min(0.0, risk.lower, risk.limit)
    top = max(1.25 * risk.limit, 1.05 * risk.upper, low + 1e-9)

    def place(value: float) -> str:
        return f"{100 * min(max((value - low) / (top - low), 0.0), 1.0):.2f}%"

    mean = "" if risk.estimate is None else _bar("mean", place(risk.estimate))
    rows = {
        "limit": exact(risk.limit),
        "mean": _number(risk.estimate),
        "bounds": between(risk.lower, risk.upper),
        risk.counted: f"{risk.count:,}",
    }
    if risk.group is not None:
        rows = {"worst": risk.group, **rows}
    return (
        f'<div class="card"><h3>{_escaped(risk.what)}</h3>'
        f'<div class="scale{" broken" if risk.alarm else ""}" role="img" '
        f'aria-label="{_escaped(risk)}">{_bar("bound", place(risk.upper))}{mean}'
        f'<span class="limit" style="left:{place(risk.limit)}"></span></div>'
        f"{_list(rows)}{_groups(risk)}</div>"
    )


def _bar(kind: str, width: str) -> str:
    """Draw a bar of a scale."""
    return f'<span class="{kind}" style="width:{width}"></span>'


def _groups(risk: WatchedRisk) -> str:
    """List the groups of a risk, where it has some."""
    if not risk.groups:
        return ""
    rows = {
        str(part.group): f"{_number(part.estimate)}{' (alarm)' if part.alarm else ''}"
        for part in risk.groups
    }
    return f"<hr>{_list(rows)}"


def _figures(watch: Watch) -> list[PageFigure]:
    """Draw each risk over time, and the evidence against all limits."""
    if not watch.n_labels:
        return []
    figures, every, column = [], [], 0
    for promise in watch.record.subject.promises:
        places = range(column, column + len(promise.streams))
        column = places.stop
        courses = [_course(watch, place) for place in places]
        # Alarms first, then the largest of the last means.
        courses.sort(key=lambda course: (course.alarm is None, -_last(course)))
        every += courses
        stream = promise.streams[0]
        left_out = len(courses) - _LINES
        others = how_many(left_out, "other group is", "other groups are")
        more = f" {others} left out." if left_out > 0 else ""
        figures.append(
            PageFigure(
                f"{promise.risk.name} over time",
                f"Means of stretches of {stream.counted}. The shaded bounds hold for all stretches "
                f"together; few labels make them wide.{more}",
                risk_course(stream.what, stream.limit, courses[:_LINES]),
            )
        )
    every.sort(key=lambda course: (course.alarm is None, -_last(course)))
    figures.append(
        PageFigure(
            "The evidence against the limits",
            "What bets against each limit have won, as a share of what raises an alarm. It falls "
            "while a limit is kept, and grows ever faster once it is broken. It is drawn between a "
            "thousandth and a thousand: a line that runs along either of them goes on beyond it.",
            evidence_course(every[:_LINES]),
        )
    )
    return figures


def _last(course: Course) -> float:
    """Return the last mean of a course that is known."""
    known = course.mean[np.isfinite(course.mean)]
    return float(known[-1]) if len(known) else -np.inf


def _course(watch: Watch, column: int) -> Course:
    """Cut the past of a stream into stretches, and estimate each of them."""
    record = watch.record
    history, state, rule = record.history, record.state, record.rule
    rows, times = list(history.rows), list(history.times)
    sums, capital = list(history.sums[:, column]), list(history.wealth[:, column])
    if not rows or rows[-1] < state.rows:
        rows.append(state.rows)
        times.append(times[-1] if times else "")
        sums.append(state.sums[column])
        capital.append(float(wealth(rule, state)[column]))
    step = -(-len(rows) // _STRETCHES)
    ends = [*range(step - 1, len(rows) - 1, step), len(rows) - 1]
    edges = [np.zeros_like(sums[0]), *(sums[end] for end in ends)]
    segments = [segment_between(a, b) for a, b in pairwise(edges)]
    estimates = segment_estimates(rule, column, segments, delta=watch.delta / 2)
    name, stream = record.subject.streams[column]
    alarms = [alarm for alarm in state.alarms if alarm.stream == column]
    return Course(
        name=stream.group or name,
        starts=[0, *(rows[end] for end in ends[:-1])],
        stops=[rows[end] for end in ends],
        times=[times[end] for end in ends],
        mean=_shown(stream, [one.mean for one in estimates]),
        lower=_shown(stream, [one.lower for one in estimates]),
        upper=_shown(stream, [one.upper for one in estimates]),
        evidence=np.array([capital[end] for end in ends]) / rule.threshold_array[column],
        alarm=(alarms[0].row, alarms[0].segment.row) if alarms else None,
    )


def _shown(stream: Stream, values: Sequence[float | None]) -> np.ndarray:
    """Bring values to the units of a stream; NaN where there is none."""
    return np.array([np.nan if value is None else stream.shown(value) for value in values])


def _what_is_assumed(watch: Watch) -> str:
    """Say what the guarantee of the watch rests on."""
    sampled = watch.record.subject.largest_weight is not None
    who = (
        "Examples were labelled with probabilities that were known and decided before the label "
        "was seen; their weights say so."
        if sampled
        else "Each example was labelled with the same probability, or all were."
    )
    contrasts = any(promise.n_blocks for promise in watch.record.subject.promises)
    order = (
        "<li><b>The groups come in a random order.</b> A group that always comes when losses of "
        "all groups are large looks like a gap.</li>"
        if contrasts
        else ""
    )
    return f"""<section><h2>What this rests on</h2><ul>
<li><b>Who is labelled.</b> {who}</li>
<li><b>When labels come.</b> Late labels are fine as long as errors are not reported sooner than
successes: the order must not depend on the losses.</li>
<li><b>What an alarm says.</b> At some moment since the watch began a risk was above its limit. It
does not say why, nor that the risk still is.</li>{order}
</ul></section>"""


def _number(value: float | None) -> str:
    """Write a number of the page."""
    return "not known" if value is None else f"{value:.4g}"


def _escaped(text: object) -> str:
    """Escape a text for the page."""
    return html.escape(str(text))
