"""The watch: a certificate, the labels since then, and whether its limits are still kept."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import numpy.typing as npt
import optuna

from riskpilot.common import how_many
from riskpilot.guarantee import Certificate
from riskpilot.losses import LossMapping
from riskpilot.watch.files import read_file, with_scores
from riskpilot.watch.findings import WatchAlarm, WatchedRisk
from riskpilot.watch.intake import LONGEST_TIME, Given, read_update, time_of
from riskpilot.watch.places import Place, place_of
from riskpilot.watch.record import Subject, WatchRecord, new_record
from riskpilot.watch.standing import alarms_of, card_of, headline_of, message_of, risks_of


class Watch:
    """Watch a certified configuration after deployment, and raise an alarm when a limit breaks.

    Labels of new examples come one by one or in batches. As long as every risk is at most its
    limit at every moment, the chance of any alarm over the whole life of the watch is at most
    ``delta``; a long good past does not delay an alarm. The order in which labels come, and which
    examples are labelled, must not depend on their losses.

    Parameters
    ----------
    certificate : Certificate, str or Path
        The certificate that promises the limits, or the file that it was saved to.
    delta : float, default 0.05
        The probability of any false alarm over the whole life of the watch, of all risks together.
    largest_weight : float, optional
        Where examples are labelled with different probabilities: the largest weight that there can
        be, one over the smallest probability. Every update then gives ``weights``.
    judge : str or sequence of str, optional
        The risks with which a judge helps. The alarm stays one about the labels.

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
    >>> watch.update({"error": rng.random(1000) < 0.06}), watch.alarm
    (1000, False)
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
        judge: str | Sequence[str] | None = None,
    ) -> None:
        self._record = new_record(Subject.of(certificate, delta, largest_weight, judge))
        self._saved: dict[str, str] = {}  # the digest of what lies at each place, as last known

    def update(
        self,
        losses: LossMapping,
        *,
        groups: npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        ids: npt.ArrayLike | None = None,
        judge: Mapping[str, Any] | None = None,
        at: str | date | None = None,
    ) -> int:
        """Take the losses of the next labelled examples, in the order in which they came.

        One call with many labels and many calls with one raise the same alarms, without a judge:
        its fresh scores are shared out over the labels of an update. What is refused changes
        nothing.

        Parameters
        ----------
        losses : mapping of str to array of shape (b,)
            The losses of the deployed configuration by risk, NaN where an example does not count;
            beside them the groups, labels, references and weights that the certificate knows.
        groups : array of shape (b,), optional
            The groups of the examples, where the certificate knows them under one name.
        weights : array of shape (b,), optional
            One over the probability of each example to be labelled, given ``largest_weight``.
        ids : array of shape (b,), optional
            What tells each example from all others. One that was counted before is passed over.
        judge : mapping, optional
            Where a judge helps, its scores of these examples and of fresh ones of the same place
            and time: ``{"labelled": {"error": (b,)}, "unlabelled": {"error": (B,)}}``; and the
            ``"ids"`` of the fresh ones, if known: none is used twice, or labelled at any time.
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
            Where a loss or a score is outside the range that the certificate declares.
        LeakageError
            Where a fresh example is labelled, in this update or after it.
        """
        record, time = self._record, time_of(at)
        taken = read_update(record, losses, Given(groups, weights, ids, judge))
        record.take(taken.values, taken.weights, taken.scores, taken.blocks, time)
        record.seen.add(taken.digests)
        record.fresh.add(taken.fresh)
        record.repeated += taken.n - len(taken.values)
        return len(taken.values)

    def update_from_file(
        self,
        path: str | Path,
        *,
        ids: str | None = None,
        weights: str | None = None,
        judge: str | Path | None = None,
        fresh: str = "fresh",
        at: str | date | None = None,
    ) -> int:
        """Take the labels in a file, one row for each example, in the order in which they came.

        A file whose place and content were counted before is passed over, and so are columns that
        the certificate does not know. The others hold losses as for `select_from_frame`.

        Parameters
        ----------
        path : str or Path
            A CSV, Parquet or JSON file.
        ids : str, optional
            The column that tells each example from all others; "example" where there is one.
        weights : str, optional
            The column of weights, as in `update`.
        judge : str or Path, optional
            A file with a judge's scores of these examples and of fresh ones, by their ids.
        fresh : str, default "fresh"
            Its column that says true of examples that are never labelled.
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
        subject = self._record.subject
        digest, read = read_file(subject.problem, path, ids, weights)
        if digest in self._record.files:
            return 0
        if judge is not None:
            read = with_scores(read, subject.problem, subject.judged, judge, ids, fresh)
        n = self.update(
            read.losses,
            weights=read.weights,
            ids=read.ids,
            judge=read.judge,
            at=Path(path).stem[:LONGEST_TIME] if at is None else at,
        )
        self._record.files += (digest,)
        return n

    @property
    def alarm(self) -> bool:
        """Whether some limit was shown to be broken. An alarm stays."""
        return bool(self._record.accounts.alarms)

    @property
    def alarms(self) -> tuple[WatchAlarm, ...]:
        """The first alarm of each risk, or of each group of it, in the order in which they came."""
        return alarms_of(self._record)

    @property
    def risks(self) -> dict[str, WatchedRisk]:
        """How each risk stands over all labels so far, with bounds, by its name."""
        return risks_of(self._record)

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
        return message_of(self._record)

    @property
    def headline(self) -> str:
        """Whether a limit was shown to be broken, in one sentence."""
        return headline_of(self._record)

    def save(self, place: str | Path | optuna.Study) -> Any:
        """Write the watch, whole or not at all, to go on with later.

        Parameters
        ----------
        place : str or Path or optuna.Study
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
            or saved as: another process has gone on with it, or it is another file.
        """
        with place_of(place).held() as held:
            self._save(held)
        return place

    @classmethod
    def load(cls, place: str | Path | optuna.Study) -> "Watch":
        """Read a watch that `save` wrote.

        Parameters
        ----------
        place : str or Path or optuna.Study
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
        delta: float | None = None,
        largest_weight: float | None = None,
        judge: str | Sequence[str] | None = None,
    ) -> Iterator["Watch"]:
        """Go on with a watch, or begin it, while nobody else can; saved when the block ends.

        A block that ends in an error, or a process that is killed in it, leaves the watch as it was
        before the block.

        Parameters
        ----------
        place : str or Path or optuna.Study
            Where the watch lies, or will lie.
        certificate : Certificate, str or Path, optional
            The certificate that is watched. It is needed to begin; later on it must be the same.
        delta, largest_weight : float, optional
            As in `Watch`, where it begins; later on left out, or the same.
        judge
            As in `Watch`, where it begins.

        Yields
        ------
        Watch
            The watch, for updates.

        Raises
        ------
        CertificateError
            If the watch cannot be read or written, or was begun with another certificate or delta.

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
                watch._record.subject.check_same(certificate, delta, largest_weight, held.name)
            else:
                level = 0.05 if delta is None else delta
                watch = cls(certificate, delta=level, largest_weight=largest_weight, judge=judge)
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
        from riskpilot.watch.report import write_report  # plotly is slow to import

        return write_report(self, path)

    @property
    def record(self) -> WatchRecord:
        """All that the watch knows, for pages and tables of it."""
        return self._record

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        state = "alarm" if self.alarm else "no alarm"
        return f"Watch({self.config}, {how_many(self.n_labels, 'label')}, {state})"

    def _repr_html_(self) -> str:
        return card_of(self._record)

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
