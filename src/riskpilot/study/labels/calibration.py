"""`Calibration`: labels in any batches, a valid answer at any time."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from riskpilot.common import FloatArray
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.guarantee import (
    Background,
    Question,
    Use,
    begin_labels,
    fixed_sequence,
    label_by_label,
    question_digest,
)
from riskpilot.losses import LossMapping, ValidationLosses, read_label_table
from riskpilot.problem import Problem
from riskpilot.selection import FrozenPlan, Selection, conclude
from riskpilot.study.as_tables import validation_table
from riskpilot.study.kept.trials import finished
from riskpilot.study.labels import files
from riskpilot.study.labels.cards import calibration_card
from riskpilot.study.labels.kept import (
    Batch,
    keep_batch,
    read_batches,
    sequential_entry,
    use_of_question,
)
from riskpilot.study.questions.asking import Settled, background, settle
from riskpilot.study.questions.question_ledger import note_outcome, trials_of


class Calibration:
    """Calibration labels that arrive one after another, with an answer that is valid at any time.

    The candidates and their order are frozen before the first label. After every batch one may
    look, and stop as soon as a candidate is certified that is good enough: the promise holds
    whenever one stops, as long as the order of the labels does not depend on the losses.

    With a study, the labels are kept in its storage, and its ledger has the question from the first
    label on. ``Calibration(study, horizon=...)`` made again goes on where the last one stopped,
    with the candidates that it began with.

    Parameters
    ----------
    source : optuna.Study or FrozenPlan
        A study made by `create_study`, with finished trials; or what `freeze` made of a table.
    horizon : int
        The largest number of labels, fixed before the first of them.

    Raises
    ------
    ProblemError
        If the source or the horizon cannot be used, a limit is open, or a risk cannot be tested
        label by label.
    StudyError
        If the study has no finished trial, or its ledger or labels were changed.

    Examples
    --------
    >>> import numpy as np, riskpilot as rp
    >>> rng = np.random.default_rng(0)
    >>> error, cost = np.array([[0.03], [0.05]]), np.array([2.0, 1.0])
    >>> plan = rp.freeze(
    ...     rp.Problem([rp.Risk("error", limit=0.1)], minimize="cost"),
    ...     validation={"error": rng.random((2, 500)) < error, "cost": cost},
    ... )
    >>> calibration = rp.Calibration(plan, horizon=1000)
    >>> while not calibration.done:
    ...     calibration.add({"error": rng.random((2, 20)) < error})  # the next 20 labels
    >>> calibration.certified, calibration.n_labels
    ([{'index': 0}, {'index': 1}], 400)
    >>> calibration.select().config
    {'index': 1}
    """

    def __init__(self, source: optuna.Study | FrozenPlan, *, horizon: int) -> None:
        self._study: optuna.Study | None = None
        self._settled: Settled | None = None
        self._frozen: FrozenPlan | None = None
        self._use: Use | None = None
        self._n_batches = 0
        if isinstance(source, FrozenPlan):
            self._frozen = source
            self._begin(source.question, source.validation, horizon)
        elif isinstance(source, optuna.Study):
            self._open(source, horizon)
        else:
            raise ProblemError(
                f"A Calibration is made of a study or of a frozen plan, but it was given "
                f"{shown(source)}. Pass a study with finished trials, or "
                f"riskpilot.freeze(problem, validation=...)."
            )

    def _begin(self, question: Question, validation: ValidationLosses, horizon: int) -> None:
        """Stand before the first label."""
        if question.plan.judged:
            raise ProblemError(
                "Labels that arrive one after another are tested without a judge, but the "
                "evaluations of this study bring a judge's scores. Use select(study) once all "
                "labels are there, or evaluate without judge=."
            )
        plan = label_by_label(question.plan, horizon)
        self._question = replace(question, plan=plan)
        self._validation = validation
        self._progress = begin_labels(plan)

    def _open(self, study: optuna.Study, horizon: int) -> None:
        """Begin with a study, or go on with the labels that its storage has."""
        self._study = study
        self._settle(study, horizon, None)
        entry = sequential_entry(study, self._question.content)
        if entry is None:
            return
        self._settle(study, horizon, trials_of(entry))
        name = question_digest(self._question.content)
        self._use = use_of_question(study, name)
        for batch in read_batches(study, name):
            self._take(batch)
            self._n_batches += 1

    def _settle(self, study: optuna.Study, horizon: int, numbers: Sequence[int] | None) -> None:
        """Freeze the plan of a study; ``numbers``: of the trials that are considered."""
        self._settled = settle(study, fixed_sequence, None, 1.0, 0, True, numbers)
        self._begin(self._settled.question, self._settled.validation, horizon)

    @property
    def problem(self) -> Problem:
        """The risks with their limits, the free objective, and delta."""
        return self._question.problem

    @property
    def candidates(self) -> tuple[dict[str, Any], ...]:
        """The configurations that are tested, in testing order."""
        return self._question.candidates

    @property
    def horizon(self) -> int:
        """The largest number of labels."""
        return self._progress.horizon

    @property
    def n_labels(self) -> int:
        """How many labels there are so far."""
        return self._progress.n_labels

    @property
    def labels(self) -> tuple[int, ...]:
        """How many labels each candidate has got; fewer where it was decided before."""
        return tuple(map(int, self._progress.labels))

    @property
    def trials(self) -> tuple[int, ...]:
        """The numbers of the candidates' trials; their rows, where the plan is of a table."""
        order, numbers = self._question.plan.order, self._question.trials
        return tuple(row if numbers is None else numbers[row] for row in order)

    def losses(self, name: str) -> FloatArray:
        """Return the losses of one risk so far, in the order of the labels.

        Parameters
        ----------
        name : str
            The name of the risk.

        Returns
        -------
        array of shape (n_candidates, n_labels)
            In double precision; NaN where a candidate has got no loss, or it does not count.
        """
        empty = np.full((len(self.candidates), self.n_labels), np.nan)
        return np.array(self._progress.table.get(name, empty))

    @property
    def certified(self) -> list[dict[str, Any]]:
        """The configurations that are certified so far, in testing order."""
        passed = self._progress.passed
        return [config for config, ok in zip(self.candidates, passed, strict=True) if ok]

    @property
    def needed(self) -> list[int]:
        """The positions of the candidates whose further losses could change something."""
        return list(self._progress.needed)

    @property
    def done(self) -> bool:
        """Whether no further label can change anything."""
        return not self._progress.needed

    @property
    def message(self) -> str:
        """Where the calibration stands, in plain words."""
        found, n = self.certified, len(self.candidates)
        labels = f"{self.n_labels:,} of at most {self.horizon:,} labels"
        if not found:
            state = "nothing is certified" + ("" if self.done else " yet")
        else:
            state = f"{len(found)} of {n} candidates {'is' if len(found) == 1 else 'are'} certified"
        if self.done:
            rest = "no further label can change that"
        else:
            needed = "candidate needs" if len(self.needed) == 1 else "candidates need"
            rest = f"{len(self.needed)} {needed} further labels"
        return f"{labels}: {state}; {rest}."

    def add(self, losses: LossMapping, candidates: Sequence[int] | None = None) -> None:
        """Take the losses of the next labelled examples, in the order of the labels.

        What is decided does not depend on how labels are divided into batches. The order of the
        labels must not depend on their losses: draw the examples at random before any is labelled.
        Rows of candidates that are decided, and labels beyond the horizon, are not looked at.

        Parameters
        ----------
        losses : mapping of str to array
            For each risk the losses of the next b labels, shape (n_candidates, b), rows as in
            ``candidates`` of the calibration; groups, weights and references beside them, shape
            (b,).
        candidates : sequence of int, optional
            The positions of the candidates that the rows belong to; all by default. A candidate
            that was left out before gets the losses of the labels that it has not got yet, from the
            first of them on.

        Raises
        ------
        LossError
            If the losses cannot be used, or candidates that have got different numbers of labels
            are given losses together.
        StudyError
            If another process has added labels to the study, or its storage cannot be written.
        """
        positions = self._positions(candidates)
        progress = self._progress
        wanted = [row for row, position in enumerate(positions) if position in progress.needed]
        if not wanted:
            return
        chosen = [positions[row] for row in wanted]
        starts = sorted({int(start) for start in progress.labels[chosen]})
        if len(starts) > 1:
            raise LossError(
                f"Candidates that get losses together must have got the same labels so far, but "
                f"some have {starts[0]:,} and others {starts[-1]:,}. Give those that are behind "
                f"their losses first: add(losses, candidates=[...])."
            )
        plan = self._question.plan
        most = self.horizon - starts[0]
        table = read_label_table(
            plan.problem, losses, plan.groups, n_rows=len(positions), rows=wanted, most=most
        )
        batch = Batch(starts[0], tuple(chosen), table)
        after = progress.add(table, chosen)  # refused before anything is written
        if self._study is not None:
            self._use = keep_batch(self._study, self._question, self._n_batches, batch)
        self._progress = after
        self._n_batches += 1

    def _positions(self, candidates: Sequence[int] | None) -> list[int]:
        """Return the positions that rows belong to, each once and each that of a candidate."""
        n = len(self.candidates)
        if candidates is None:
            return list(range(n))
        given = np.asarray(candidates)
        whole = given.ndim == 1 and given.dtype.kind in "iu" and given.size > 0
        named = set(given.tolist()) if whole else set()
        if not whole or not named <= set(range(n)) or len(named) < len(given):
            raise LossError(
                f"candidates are positions from 0 to {n - 1}, each named once, but they are "
                f"{shown(candidates)}. Use those of `needed`."
            )
        return [int(position) for position in given]

    def _take(self, batch: Batch) -> None:
        """Take a batch that was checked before, as it is kept."""
        plan = self._question.plan
        table = read_label_table(plan.problem, batch.table, plan.groups, len(batch.candidates))
        self._progress = self._progress.add(table, batch.candidates)

    def select(self) -> Selection:
        """Choose the best configuration that is certified by now.

        It may be asked at any time, and again after further labels: all its answers hold at once.

        Returns
        -------
        Selection
            What is certified and best, with the certificate; its ``config`` is None where nothing
            is certified.

        Raises
        ------
        LossError
            If there is no label yet.
        """
        if not self.n_labels:
            raise LossError(
                "A selection needs at least one label, but none has been added yet. "
                "Call add(losses) first."
            )
        result = self._progress.result()
        selection = conclude(
            self._question, self._validation, result, self._use, self._background()
        )
        if self._study is not None:
            note_outcome(self._study, selection.certificate)
        return selection

    def _background(self) -> Background:
        if self._study is not None and self._settled is not None:
            return background(self._study, replace(self._settled, question=self._question))
        assert self._frozen is not None
        return self._frozen.background

    def save(self, path: str | Path) -> Path:
        """Write the frozen plan and all labels to a file, whole or not at all.

        The file of a study's calibration is a copy to carry elsewhere: what is added to it later
        does not come into the study's storage.

        Parameters
        ----------
        path : str or Path
            The file to write; ``.npz`` is its usual ending.

        Returns
        -------
        Path
            The same path.

        Raises
        ------
        CertificateError
            If the file cannot be written.
        """
        frozen = self._frozen or self._copied()
        return files.save(path, frozen, self._question, self._use, self._progress)

    def _copied(self) -> FrozenPlan:
        """Return the frozen plan of a study, with the validation losses of its trials."""
        assert self._study is not None
        assert self._settled is not None
        numbers = set(self._question.trials or ())
        trials = [t for t in finished(self._study).trials if t.number in numbers]
        given = validation_table(self._study, trials)
        return FrozenPlan(self._settled.question, self._validation, given)

    @classmethod
    def load(cls, path: str | Path) -> "Calibration":
        """Read what `save` wrote, and go on from there.

        Parameters
        ----------
        path : str or Path
            A file that `save` wrote.

        Returns
        -------
        Calibration
            With the same candidates and labels.

        Raises
        ------
        CertificateError
            If the file cannot be read, is no calibration, or was changed after it was written.
        """
        saved = files.load(path)
        made = cls(saved.frozen, horizon=saved.horizon)
        made._use = saved.use
        made._progress = saved.progress(made._question.plan)
        made._n_batches = len(made._progress.looks)
        return made

    def __repr__(self) -> str:
        return f"Calibration({self.message})"

    def __str__(self) -> str:
        return self.message

    def _repr_html_(self) -> str:
        passed = [bool(ok) for ok in self._progress.passed]
        told = (self.problem, self.message, self.candidates, self.labels, passed, self.needed)
        return calibration_card(*told)
