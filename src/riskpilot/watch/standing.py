"""How a watch stands: its alarms and its risks, in the words and units that people know."""

from riskpilot.common import card, confidence, exact, how_many, percent
from riskpilot.watch.estimates import segment_estimates, since_begin
from riskpilot.watch.findings import WatchAlarm, WatchedRisk, between, over, watched_risk
from riskpilot.watch.record import WatchRecord


def alarms_of(record: WatchRecord) -> tuple[WatchAlarm, ...]:
    """Describe the first alarm of each risk, or of each group, in the order in which they came."""
    half = record.rule.delta / 2
    streams = record.subject.streams
    found = []
    for alarm, time in zip(record.accounts.alarms, record.alarm_times, strict=True):
        risk, stream = streams[alarm.stream]
        then = [alarm.segment]  # as it was at the alarm; later on, bets may begin anew
        (estimate,) = segment_estimates(record.rule, alarm.stream, then, delta=half)
        found.append(
            WatchAlarm(
                risk=risk,
                group=stream.group,
                what=stream.what,
                limit=stream.limit,
                label=alarm.row,
                time=time,
                change=alarm.segment.row,
                change_time=record.history.time_of(alarm.segment.row),
                estimate=None if estimate.mean is None else stream.shown(estimate.mean),
                lower=stream.shown(estimate.lower),
                upper=stream.shown(estimate.upper),
            )
        )
    return tuple(found)


def risks_of(record: WatchRecord) -> dict[str, WatchedRisk]:
    """Describe how each risk stands over all labels so far, by its name."""
    estimates = since_begin(record.rule, record.state, delta=record.rule.delta / 2)
    alarmed = {alarm.stream for alarm in record.accounts.alarms}
    found, start = {}, 0
    for promise in record.subject.promises:
        places = range(start, start + len(promise.streams))
        start = places.stop
        found[promise.risk.name] = watched_risk(
            promise.risk.name,
            promise.streams,
            [estimates[place] for place in places],
            [place in alarmed for place in places],
        )
    return found


def headline_of(record: WatchRecord) -> str:
    """Say whether a limit was shown to be broken, in one sentence."""
    streams = record.subject.streams
    broken = {streams[alarm.stream][0] for alarm in record.accounts.alarms}
    if broken:
        risks = record.subject.problem.risks
        limits = " and ".join(str(risk) for risk in risks if risk.name in broken)
        return f"alarm. {limits} {'was' if len(broken) == 1 else 'were'} shown to be broken."
    return "no alarm. Nothing shows that a limit is broken."


def message_of(record: WatchRecord) -> str:
    """Say how the watch stands, in plain words."""
    head = (
        f"Watching {record.subject.config} on {how_many(record.accounts.rows, 'label')}: "
        f"{headline_of(record)}\n"
        f"A false alarm has a chance of at most {percent(record.rule.delta)} over the whole life "
        f"of this watch; all bounds hold together, at all times, with probability at least "
        f"{confidence(record.rule.delta)}."
    )
    alarms = [f"  ALARM: {alarm}" for alarm in alarms_of(record)]
    return "\n".join([head, *alarms, *(f"  {risk}" for risk in risks_of(record).values())])


def card_of(record: WatchRecord) -> str:
    """Show how the watch stands as HTML, for notebooks."""
    rows = [
        (
            part.what,
            part.group or "",
            "" if part.estimate is None else part.estimate,
            between(part.lower, part.upper),
            exact(part.limit),
            over(part),
        )
        for risk in risks_of(record).values()
        for part in (risk.groups or (risk,))
    ]
    bounds = f"bounds (all together at least {confidence(record.rule.delta)})"
    head = ("risk", "group", "estimate", bounds, "limit", "over")
    alarms = alarms_of(record)
    title = f"Watch of {record.subject.config}, {how_many(record.accounts.rows, 'label')}"
    lines = [headline_of(record), *map(str, alarms)]
    return card(title, lines, head=head, rows=rows, good=not alarms)
