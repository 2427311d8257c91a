"""`Calibration`: labels in any batches, a valid answer at any time."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna

from riskpilot.common import FloatArray
from riskpilot.errors import LossError, ProblemError, shown
from riskpilot.guarantee import Background, Use, begin_within_reach, question_by_label
from riskpilot.losses import IDS, FreshScores, LossMapping, read_fresh, score_name
from riskpilot.problem import Problem
from riskpilot.selection import FrozenPlan, Selection, conclude
from riskpilot.study.kept.attributes import settings_of
from riskpilot.study.labels import cards, files
from riskpilot.study.labels.arriving import read_batch, read_kept
from riskpilot.study.labels.kept import (
    entry_of_question,
    keep_batch,
    read_batches,
    sequential_entry,
)
from riskpilot.study.labels.resuming import (
    Asked,
    asked_of,
    check_same_question,
    fresh_of_entry,
    frozen_copy,
    settle_labels,
)
from riskpilot.study.labels.searched import searched_by
from riskpilot.study.labels.words import progress_in_words
from riskpilot.study.questions.asking import Settled, background
from riskpilot.study.questions.question_ledger import note_outcome, trials_of, use_of


class Calibration:
    """Calibration labels that arrive one after another, with an answer that is valid at any time.

    The candidates and their order are frozen before the first label. After every batch one may
    look, and stop as soon as a candidate is certified that is good enough: the promise holds
    whenever one stops, as long as the order of the labels does not depend on the losses.

    With a study, the labels are kept in its storage, and its ledger has the question from the first
    label on. ``Calibration(study, horizon=...)`` made again goes on where the last one stopped,
    with the candidates that it began with.

    It can be pickled and copied, with all of its labels. The copy of one that has a study goes on
    from the labels in the study's storage, where no two copies can add different ones; one whose
    study lives in memory cannot be copied, since its storage would be copied with it.

    Parameters
    ----------
    source : optuna.Study or FrozenPlan
        A study made by `create_study`, with finished trials; or what `freeze` made of a table.
    horizon : int
        The largest number of labels, fixed before the first of them.
    judge : mapping, optional
        Scores of a judge, such as a large model, that was fixed before the first label:
        ``{"unlabelled": {"error": (n, M)}}``, of M fresh examples that are never labelled and no
        validation examples, in the range of the losses, rows as in ``candidates``; shape (M,) where
        they are the same for all candidates. Their ``"ids"``, shape (M,), may stand beside them.
        The scores of labelled examples come with their losses. The promise stays one about the
        labels, whatever the judge is worth.

    Raises
    ------
    ProblemError
        If the source or the horizon cannot be used, no 0/1 losses can pass with so few labels, a
        limit is open, or a risk cannot be tested label by label.
    LossError
        If the scores of the judge cannot be used.
    LeakageError
        If a fresh example of the judge is a validation example.
    StudyError
        If the study has no finished trial, its ledger or labels were changed, or its labels began
        with another judge or another plan.

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

    def __init__(
        self,
        source: optuna.Study | FrozenPlan,
        *,
        horizon: int,
        judge: Mapping[str, Any] | None = None,
    ) -> None:
        self._come_into_being(source if isinstance(source, FrozenPlan) else None)
        if isinstance(source, FrozenPlan):
            plan = source.question.plan
            fresh = read_fresh(plan.problem, judge, len(plan.order))
            self._begin(source, horizon, fresh)
        elif isinstance(source, optuna.Study):
            self._open(source, horizon, judge)
        else:
            raise ProblemError(
                f"A Calibration is made of a study or of a frozen plan, but it was given "
                f"{shown(source)}. Pass a study with finished trials, or "
                f"riskpilot.freeze(problem, validation=...)."
            )

    def _come_into_being(self, frozen: FrozenPlan | None = None) -> None:
        """Stand before a study is known."""
        self._study: optuna.Study | None = None
        self._settled: Settled | None = None
        self._frozen = frozen
        self._use: Use | None = None
        self._n_batches = 0

    def _begin(self, source: Settled | FrozenPlan, horizon: int, fresh: FreshScores | None) -> None:
        """Stand before the first label."""
        question, validation = source.question, source.validation
        entropy = question.plan.entropy
        if self._study is not None:
            entropy = settings_of(self._study).get("entropy", 0)
        self._searched = searched_by(source, self._study)
        self._searched.check_fresh(fresh)
        self._question = question_by_label(question, validation, horizon, fresh, entropy)
        self._validation = validation
        self._progress = begin_within_reach(self._question.plan, fresh)

    def _open(self, study: optuna.Study, horizon: int, judge: Mapping[str, Any] | None) -> None:
        """Begin with a study, or go on with the labels that its storage has."""
        settled = settle_labels(study, None)
        asked = question_by_label(settled.question, settled.validation, horizon)
        entry = sequential_entry(study, asked.content)
        if entry is not None:
            settled = settle_labels(study, trials_of(entry))
        self._take_up(study, settled, entry, horizon, judge)

    def _take_up(
        self,
        study: optuna.Study,
        settled: Settled,
        entry: dict[str, Any] | None,
        horizon: int,
        judge: Mapping[str, Any] | None,
    ) -> None:
        """Stand where the labels of a question stand; ``entry``: of the ledger, if it has some."""
        self._study, self._settled = study, settled
        plan = settled.question.plan
        if entry is None:
            self._begin(settled, horizon, read_fresh(plan.problem, judge, len(plan.order)))
            return
        fresh = fresh_of_entry(study, entry, plan, judge)
        self._begin(settled, horizon, fresh)
        check_same_question(study, entry, self._question)
        self._use = use_of(entry)
        for kept in read_batches(study, entry["question"]):
            batch = read_kept(self._progress, kept)
            if batch is not None:
                self._progress = self._progress.add(batch.table, batch.candidates)
            self._n_batches += 1

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

    def scores(self, name: str) -> FloatArray:
        """Return the judge's scores of the labelled examples so far, in the order of the labels.

        Parameters
        ----------
        name : str
            The name of a risk with which the judge helps.

        Returns
        -------
        array of shape (n_candidates, n_labels)
            In double precision; NaN where a candidate has got no loss, or it does not count.
        """
        return self.losses(score_name(name))

    @property
    def ids(self) -> tuple[str, ...] | None:
        """The ids of the labelled examples so far, where they were given."""
        found = self._progress.table.get(IDS)
        return None if found is None else tuple(found.tolist())

    @property
    def judged(self) -> tuple[str, ...]:
        """The risks with which a judge helps."""
        return tuple(self._question.plan.judged)

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
        return progress_in_words(self._progress)

    def add(
        self,
        losses: LossMapping,
        candidates: Sequence[int] | None = None,
        *,
        judge: Mapping[str, Any] | None = None,
        ids: Sequence[Any] | npt.NDArray[Any] | None = None,
    ) -> None:
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
        judge : mapping, optional
            Where a judge helps, its scores of the same examples: ``{"labelled": {"error": (n_rows,
            b)}}``, or shape (b,) where they are the same for all candidates.
        ids : sequence, optional
            The identities of the b examples, given with every batch or with none: no example is
            labelled twice, and none is a fresh one of the judge or a validation example.

        Raises
        ------
        LossError
            If the losses or scores cannot be used, an example was labelled before, or candidates
            that have got different numbers of labels are given losses together.
        LeakageError
            If a fresh example of the judge or a validation example is labelled.
        StudyError
            If another process has added labels to the study, or its storage cannot be written.
        """
        batch = read_batch(self._progress, losses, candidates, judge, ids)
        if batch is None:
            return
        after = self._progress.add(batch.table, batch.candidates)  # refused before it is written
        self._searched.check_batch(self._progress, after, batch)
        if self._study is not None:
            self._use = keep_batch(self._study, self._question, self._n_batches, batch, after.fresh)
        self._progress = after
        self._n_batches += 1

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
        LeakageError
            If the labels are what a study searched by from which this one was started.
        """
        if not self.n_labels:
            raise LossError(
                "A selection needs at least one label, but none has been added yet. "
                "Call add(losses) first."
            )
        self._searched.check_labels(self._progress)
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
        frozen = self._frozen
        if frozen is None:
            assert self._study is not None
            assert self._settled is not None
            frozen = frozen_copy(self._study, self._settled)
        return files.save(path, frozen, self._question, self._use, self._progress)

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
        return cls._load(path)

    @classmethod
    def _load(cls, source: str | Path | bytes) -> "Calibration":
        """Read a file that `save` wrote, or its content."""
        saved = files.load(source)
        try:
            made = cls(saved.frozen, horizon=saved.horizon, judge=saved.judge)
        except ProblemError as error:
            raise files.unusable(source, error) from None
        files.check_same_plan(source, saved, made._question)
        made._use = saved.use
        made._progress = saved.progress(made._question.plan, made._progress.fresh)
        made._n_batches = len(made._progress.looks)
        return made

    @classmethod
    def _again(cls, study: optuna.Study, asked: Asked) -> "Calibration":
        """Go on with a question to the labels of a study, from all that its storage has by now."""
        made = cls.__new__(cls)
        made._come_into_being()
        settled = settle_labels(study, asked.trials)
        entry = entry_of_question(study, asked.question)
        made._take_up(study, settled, entry, asked.horizon, asked.judge)
        asked.check_same(study, made._question)
        return made

    def __copy__(self) -> "Calibration":
        """Stand where this one stands, with the same study; its state is never changed in place."""
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy, with all labels; a copy of a study's goes on from what the study's storage has."""
        if self._study is not None:
            return self._again, (self._study, asked_of(self._study, self._question, self._progress))
        assert self._frozen is not None
        content = files.as_bytes(self._frozen, self._question, self._use, self._progress)
        return self._load, (content,)

    def __repr__(self) -> str:
        return f"Calibration({self.message})"

    def __str__(self) -> str:
        return self.message

    _repr_html_ = cards.calibration_card
