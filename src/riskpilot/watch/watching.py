"""The watch: a certificate, the labels since then, and whether its limits are still kept."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna

from riskpilot.common import FloatArray, card, exact, is_name, percent
from riskpilot.errors import LossError, shown
from riskpilot.guarantee import Certificate
from riskpilot.losses import DeployedLosses, LossMapping, number_array, read_deployed
from riskpilot.watch.estimates import segment_estimates, since_begin, since_change
from riskpilot.watch.files import read_file
from riskpilot.watch.findings import WatchAlarm, WatchedRisk, watched_risk
from riskpilot.watch.places import Place, place_of
from riskpilot.watch.record import Subject, WatchRecord, new_record

_LONGEST_TIME = 40


class Watch:
    """Watch a certified configuration after deployment, and raise an alarm when a limit breaks.

    Labels of new examples come one by one or in batches. As long as every risk is at most its
    limit at every moment, the chance of any alarm over the whole life of the watch is at most
    ``delta``; the risks may wander below their limits, and a long good past does not delay an
    alarm. The order in which labels come, and which examples are labelled, must not depend on their
    losses.

    Parameters
    ----------
    certificate : Certificate, str or Path
        The certificate that promises the limits, or the file that it was saved to.
    delta : float, default 0.05
        The probability of any false alarm over the whole life of the watch, of all risks together.
    largest_weight : float, optional
        Where examples are labelled with different probabilities: the largest weight that there can
        be, one over the smallest probability. Every update then gives ``weights``.

    Raises
    ------
    CertificateError
        Where the certificate cannot be read, or promises nothing.
    ProblemError
        Where delta or the largest weight cannot be meant, or no valid watch is known for a risk.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> rng = np.random.default_rng(0)
    >>> selection = rp.select_from_losses(
    ...     rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost"),
    ...     validation={"error": rng.random((1, 2000)) < 0.06, "cost": np.ones(1)},
    ...     calibration={"error": rng.random((1, 2000)) < 0.06},
    ... )
    >>> watch = rp.Watch(selection.certificate)
    >>> watch.update({"error": rng.random(1000) < 0.06})
    1000
    >>> watch.alarm
    False
    >>> watch.update({"error": rng.random(1000) < 0.2})
    1000
    >>> watch.alarm, 900 < watch.alarms[0].change < 1100
    (True, True)
    """

    def __init__(
        self,
        certificate: Certificate | str | Path,
        *,
        delta: float = 0.05,
        largest_weight: float | None = None,
    ) -> None:
        self._record = new_record(Subject.of(certificate, delta, largest_weight))
        self._saved: dict[str, str] = {}  # the digest of what lies at each place, as last known

    def update(
        self,
        losses: LossMapping,
        *,
        groups: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        ids: npt.ArrayLike | None = None,
        at: str | date | None = None,
    ) -> int:
        """Take the losses of the next labelled examples, in the order in which they came.

        One call with many labels and many calls with one raise the same alarms. An update that is
        refused changes nothing.

        Parameters
        ----------
        losses : mapping of str to array of shape (b,)
            The losses of the deployed configuration under the names of the risks, NaN where an
            example does not count for a conditional risk; and beside them, under their own names,
            the groups, labels, reference losses and weights that the certificate knows.
        groups : array of shape (b,), optional
            The groups of the examples, where the certificate knows them under one name.
        weights : array of shape (b,), optional
            One over the probability with which each example was chosen to be labelled, where the
            watch began with a ``largest_weight``.
        ids : array of shape (b,), optional
            What tells each example from all others. An example whose id was counted before is
            passed over.
        at : str or date, optional
            When the labels came, for people; now, if left out.

        Returns
        -------
        int
            How many of the labels were new.

        Raises
        ------
        LossError
            Where the losses, or what stands beside them, cannot be used.
        LossRangeError
            Where a loss is outside the range that the certificate declares.
        """
        subject, record, time = self._record.subject, self._record, _time(at)
        labels = read_deployed(subject.problem, self._with_groups(losses, groups))
        n = len(next(iter(labels.values())).own)
        shares = self._sampling_shares(weights, n)
        is_new, digests = (None, []) if ids is None else record.seen.new_among(ids, n)
        if is_new is not None and not is_new.all():
            labels = {name: _only(part, is_new) for name, part in labels.items()}
            shares = None if shares is None else shares[is_new]
        columns, blocks = [], []
        for promise, filled in zip(subject.promises, record.blocks, strict=True):
            values, rest = promise.values(labels[promise.risk.name], filled)
            columns.append(values)
            blocks.append(tuple(rest))
        values = columns[0] if len(columns) == 1 else np.concatenate(columns, axis=1)
        record.take(values, self._weights(labels, shares), tuple(blocks), time)
        record.seen.add(digests)
        record.repeated += n - len(values)
        return len(values)

    def update_from_file(
        self,
        path: str | Path,
        *,
        ids: str | None = None,
        weights: str | None = None,
        at: str | date | None = None,
    ) -> int:
        """Take the labels in a file, one row for each example, in the order in which they came.

        A file whose name and content were counted before is passed over. Columns hold losses as
        they do for `select_from_frame`; columns that the certificate does not know are passed over,
        too.

        Parameters
        ----------
        path : str or Path
            A CSV, Parquet or JSON file.
        ids : str, optional
            The column that tells each example from all others; "example" where there is one.
        weights : str, optional
            The column of weights, as in `update`.
        at : str or date, optional
            When the labels came; the name of the file, if left out.

        Returns
        -------
        int
            How many of the labels were new.

        Raises
        ------
        TableError
            If the file cannot be read.
        LossError
            Where the losses, or what stands beside them, cannot be used.
        """
        digest, read = read_file(self._record.subject.problem, path, ids, weights)
        if digest in self._record.files:
            return 0
        n = self.update(
            read.losses,
            weights=read.weights,
            ids=read.ids,
            at=Path(path).stem[:_LONGEST_TIME] if at is None else at,
        )
        self._record.files += (digest,)
        return n

    @property
    def alarm(self) -> bool:
        """Whether some limit is no longer kept. An alarm stays."""
        return bool(self._record.accounts.alarms)

    @property
    def alarms(self) -> tuple[WatchAlarm, ...]:
        """The first alarm of each risk, or of each group of it, in the order in which they came."""
        record, half = self._record, self.delta / 2
        if not self.alarm:
            return ()
        streams, now = record.subject.streams, since_change(record.rule, record.state, delta=half)
        found = []
        for alarm, time in zip(record.accounts.alarms, record.alarm_times, strict=True):
            risk, stream = streams[alarm.stream]
            segment, estimate = now[alarm.stream]
            if segment.row != alarm.segment.row:  # the bets have begun anew since the alarm
                then = [alarm.segment]
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

    @property
    def risks(self) -> dict[str, WatchedRisk]:
        """How each risk stands over all labels so far, with bounds, by its name."""
        record = self._record
        estimates = since_begin(record.rule, record.state, delta=self.delta / 2)
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

    @property
    def n_labels(self) -> int:
        """How many labels there were."""
        return self._record.accounts.rows

    @property
    def n_repeated(self) -> int:
        """How many labels were passed over because their id had been counted."""
        return self._record.repeated

    @property
    def delta(self) -> float:
        """The probability of any false alarm over the whole life of the watch."""
        return self._record.rule.delta

    @property
    def config(self) -> dict[str, Any]:
        """The configuration that is watched."""
        return dict(self._record.subject.config)

    @property
    def certificate(self) -> str:
        """The digest of the certificate that is watched."""
        return self._record.subject.certificate

    @property
    def largest_weight(self) -> float | None:
        """The largest weight that a label can have; None where labels have no weights."""
        return self._record.subject.largest_weight

    @property
    def message(self) -> str:
        """How the watch stands, in plain words."""
        head = (
            f"Watching {self.config} on {self.n_labels:,} labels: {self.headline}\n"
            f"A false alarm has a chance of at most {percent(self.delta)} over the whole life of "
            f"this watch."
        )
        alarms = [f"  ALARM: {alarm}" for alarm in self.alarms]
        return "\n".join([head, *alarms, *(f"  {risk}" for risk in self.risks.values())])

    @property
    def headline(self) -> str:
        """Whether a limit is broken, in one sentence."""
        broken = list(dict.fromkeys(alarm.risk for alarm in self.alarms))
        if broken:
            limits = " and ".join(
                str(risk) for risk in self._record.subject.problem.risks if risk.name in broken
            )
            return f"the promise no longer holds: {limits} is broken."
        return "no alarm. Nothing shows that a limit is broken."

    def save(self, place: str | Path | optuna.Study) -> Any:
        """Write the watch, whole or not at all, to go on with later.

        Parameters
        ----------
        place : str, Path or optuna.Study
            A file; or a study, or the address of a storage with one study, whose attributes then
            keep it.

        Returns
        -------
        str, Path or optuna.Study
            The same place.

        Raises
        ------
        CertificateError
            If it cannot be written, or if what lies there is not what this watch was loaded from
            or saved as: another process has gone on with it, or it is another watch.
        """
        with place_of(place).held() as held:
            self._save(held)
        return place

    @classmethod
    def load(cls, place: str | Path | optuna.Study) -> "Watch":
        """Read a watch that `save` wrote.

        Parameters
        ----------
        place : str, Path or optuna.Study
            Where it was saved.

        Returns
        -------
        Watch
            The watch as it was, to the last bit.

        Raises
        ------
        CertificateError
            If there is none, or if it was changed after it was written.
        """
        return cls._load(place_of(place))

    @classmethod
    @contextmanager
    def open(
        cls,
        place: str | Path | optuna.Study,
        certificate: Certificate | str | Path | None = None,
        *,
        delta: float = 0.05,
        largest_weight: float | None = None,
    ) -> Iterator["Watch"]:
        """Go on with a watch, or begin it, while nobody else can; saved when the block ends.

        A block that ends in an error, or a process that is killed in it, leaves the watch as it was
        before the block.

        Parameters
        ----------
        place : str, Path or optuna.Study
            Where the watch lies, or will lie.
        certificate : Certificate, str or Path, optional
            The certificate that is watched. It is needed to begin; later on it must be the same.
        delta : float, default 0.05
            As in `Watch`, where it begins.
        largest_weight : float, optional
            As in `Watch`, where it begins.

        Yields
        ------
        Watch
            The watch, for updates.

        Raises
        ------
        CertificateError
            If the watch cannot be read or written, or is that of another certificate.

        Examples
        --------
        ::

            with rp.Watch.open("watch.json", "certificate.json") as watch:
                watch.update({"error": losses}, ids=request_ids)
            if watch.alarm:
                print(watch)
        """
        with place_of(place).held() as held:
            if held.exists() or certificate is None:
                watch = cls._load(held)
                if certificate is not None:
                    watch._record.subject.check_same(certificate, held.name)
            else:
                watch = cls(certificate, delta=delta, largest_weight=largest_weight)
            yield watch
            watch._save(held)

    def report(self, path: str | Path) -> Path:
        """Write a page that shows the risks over time, for people. It needs no network.

        Parameters
        ----------
        path : str or Path
            The HTML file to write.

        Returns
        -------
        Path
            The same path.

        Raises
        ------
        PlotError
            If the file cannot be written.
        """
        # A page has figures, and plotly is slow to import: only who draws loads it.
        from riskpilot.watch.report import write_report

        return write_report(self, path)

    @property
    def record(self) -> WatchRecord:
        """All that the watch knows, for pages and tables of it."""
        return self._record

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        state = "alarm" if self.alarm else "no alarm"
        return f"Watch({self.config}, {self.n_labels} labels, {state})"

    def _repr_html_(self) -> str:
        rows = [
            (
                part.what,
                part.group or "",
                "" if part.estimate is None else part.estimate,
                f"{part.lower:.4g} to {part.upper:.4g}",
                exact(part.limit),
                f"{part.count:,} {part.counted}",
            )
            for risk in self.risks.values()
            for part in (risk.groups or (risk,))
        ]
        head = ("risk", "group", "estimate", "bounds", "limit", "over")
        lines = [self.headline, *map(str, self.alarms)]
        title = f"Watch of {self.config}, {self.n_labels:,} labels"
        return card(title, lines, head=head, rows=rows, good=not self.alarm)

    @classmethod
    def _load(cls, place: Place) -> "Watch":
        """Read the watch at a place."""
        text = place.read()
        watch = cls.__new__(cls)
        watch._record, digest = WatchRecord.from_json(text)
        watch._saved = {place.name: digest}
        return watch

    def _save(self, place: Place) -> None:
        """Write the watch to a place that is held, if it would replace nothing but itself."""
        place.check_unchanged(self._saved.get(place.name))
        text, digest = self._record.to_json()
        place.write(text)
        self._saved[place.name] = digest

    def _with_groups(self, losses: LossMapping, groups: npt.ArrayLike | None) -> LossMapping:
        """Put groups that were given beside the losses under the name that the certificate has."""
        if groups is None or not isinstance(losses, Mapping):
            return losses
        problem = self._record.subject.problem
        names = sorted({risk.groups for risk in problem.risks if risk.needs_groups})
        if len(names) != 1 or names[0] in losses:
            known = ", ".join(names) or "none"
            raise LossError(
                f"groups= is for a certificate that knows groups under one name, which is not "
                f"among the losses, but this one knows {known}. Put them beside the losses: "
                f'{{"{problem.names[0]}": losses, "sex": array}}.'
            )
        return {**losses, names[0]: groups}

    def _sampling_shares(self, weights: npt.ArrayLike | None, n: int) -> FloatArray | None:
        """Return sampling weights as shares of the largest, if they are as declared."""
        largest = self._record.subject.largest_weight
        if (weights is None) != (largest is None):
            raise LossError(
                f"Weights for labels that were sampled with different probabilities are given with "
                f"every update or with none, as declared when the watch began, but weights are "
                f"{'missing' if weights is None else 'given'} here and largest_weight is "
                f"{largest}. Begin with Watch(certificate, largest_weight=1 / smallest "
                f"probability); weights that the certificate knows stand beside the losses."
            )
        if weights is None or largest is None:
            return None
        w = np.asarray(number_array(weights, "update: the weights"), dtype=np.float64)
        if w.shape != (n,) or not ((w >= 0) & (w <= largest)).all():
            raise LossError(
                f"Every example has a weight in [0, {exact(largest)}], one over the probability "
                f"with which it was chosen, but these have shape {w.shape} for {n} examples, or "
                f"one lies outside. Sample every example at least as often as declared, or begin a "
                f"new watch with a larger largest_weight."
            )
        return w / largest

    def _weights(
        self, labels: Mapping[str, DeployedLosses], shares: FloatArray | None
    ) -> FloatArray | None:
        """Make the weights of each label in each stream, shape (b, K); None where none has any."""
        if not self._record.subject.weighted:
            return None
        columns = []
        for promise in self._record.subject.promises:
            part = labels[promise.risk.name]
            w = np.ones(len(part.own)) if part.weights is None else part.weights
            w = w if shares is None else w * shares
            columns.append(np.repeat(w[:, None], len(promise.streams), axis=1))
        return np.concatenate(columns, axis=1)


def _only(labels: DeployedLosses, wanted: npt.NDArray[np.bool_]) -> DeployedLosses:
    """Keep some of the labels."""
    groups = labels.groups
    return DeployedLosses(
        own=labels.own[wanted],
        unit=labels.unit[wanted],
        groups=None if groups is None else [groups[i] for i in np.flatnonzero(wanted).tolist()],
        weights=None if labels.weights is None else labels.weights[wanted],
    )


def _time(at: str | date | None) -> str:
    """Write when labels came."""
    if at is None:
        return datetime.now(UTC).isoformat(timespec="seconds")
    text = at.isoformat() if isinstance(at, date) else at
    if not is_name(text) or len(text) > _LONGEST_TIME:
        raise LossError(
            f"at says when the labels came, in at most {_LONGEST_TIME} characters, but it is "
            f'{shown(at)}. Write at="2026-03-01", or leave it out for now.'
        )
    return text
