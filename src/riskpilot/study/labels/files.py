"""A calibration in one file: the validation losses, all labels in their order, and a digest."""

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from riskpilot.common import (
    Array,
    ShapeError,
    also,
    anything,
    check_archive,
    check_replaceable,
    digest,
    digest_of,
    integer,
    list_of,
    mapping_of,
    number,
    optional,
    parse,
    reason_of,
    record,
    shown_safely,
    text,
    whole,
    write_whole,
)
from riskpilot.errors import CertificateError, RiskpilotError, raise_alone
from riskpilot.guarantee import (
    ELSEWHERE,
    FORETOLD,
    VERSIONS,
    Progress,
    Question,
    TestPlan,
    Use,
    check_foretold,
    evaluated_rows,
    foretold_rows,
    labels_again,
)
from riskpilot.losses import IDS, FreshScores, parted
from riskpilot.problem import Problem
from riskpilot.selection import FrozenPlan, frozen_again

_FORMAT = "riskpilot-calibration/1"
_VALIDATION, _LABELS, _FRESH = "validation.", "labels.", "fresh."
_FRESH_IDS, _SEEN_IDS = "ids", "seen"
_UNREADABLE = (ValueError, KeyError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error)

_HEAD = record(
    format=text,
    problem=mapping_of(anything),
    spend=number(0.0, 1.0),
    seed=whole(),
    entropy=optional(whole()),
    order=optional(list_of(whole())),
    configs=optional(list_of(mapping_of(anything))),
    space=optional(mapping_of(mapping_of(anything))),
    estimates=optional(list_of(list_of(number()))),
    trials=optional(list_of(whole())),
    search_seed=optional(integer),
    horizon=whole(1),
    plan=digest,
    labels=list_of(whole()),
    looks=list_of(whole(1)),
    use=optional(
        record(
            number=whole(1),
            ledger=optional(digest),
            elsewhere=ELSEWHERE,
            created=text,
            versions=VERSIONS,
        )
    ),
    arrays=mapping_of(digest),
)


@dataclass(frozen=True)
class Saved:
    """What a file holds: the frozen plan, and the labels in their order."""

    frozen: FrozenPlan
    horizon: int
    plan_digest: str
    use: Use | None
    labels: tuple[int, ...]
    looks: tuple[int, ...]
    table: Mapping[str, Array]
    judge: Mapping[str, Any] | None

    def progress(self, plan: TestPlan, fresh: FreshScores | None) -> Progress:
        """Compute again what the labels say."""
        losses, judge = parted(self.table)
        rows = range(len(self.labels))
        made = labels_again(plan, losses, self.labels, self.looks, rows, fresh, judge)
        ids = {IDS: self.table[IDS]} if IDS in self.table else {}
        return replace(made, table=made.table | ids)


def save(
    path: str | Path, frozen: FrozenPlan, question: Question, use: Use | None, progress: Progress
) -> Path:
    """Write a calibration to a file, whole or not at all, and return where it is."""
    content = as_bytes(frozen, question, use, progress)
    check_replaceable(path, "calibration", CertificateError, renewed="a saved calibration")
    try:
        return write_whole(path, content)
    except (OSError, TypeError, ValueError) as error:
        raise_alone(
            CertificateError(
                f"The calibration cannot be written to {shown_safely(path)}: {reason_of(error)}. "
                f"Check that the folder exists, can be written and has space."
            )
        )


def as_bytes(frozen: FrozenPlan, question: Question, use: Use | None, progress: Progress) -> bytes:
    """Return the content of a calibration's file."""
    arrays = {f"{_VALIDATION}{name}": np.asarray(v) for name, v in frozen.given.items()}
    arrays |= {f"{_LABELS}{name}": values for name, values in progress.table.items()}
    if progress.fresh is not None:
        arrays |= {f"{_FRESH}{name}": v for name, v in progress.fresh.scores.items()}
        if progress.fresh.ids is not None:
            arrays[_FRESH_IDS] = progress.fresh.ids
    if frozen.ids is not None:
        arrays[_SEEN_IDS] = frozen.ids
    plan = question.plan
    head = {
        "format": _FORMAT,
        "problem": question.problem.to_dict(),
        "spend": question.spend,
        "seed": plan.seed,
        "entropy": plan.entropy,
        "order": list(plan.order) if plan.known_order else None,
        "configs": None if question.configs is None else list(question.configs),
        "space": question.space,
        "estimates": None if plan.estimates is None else [list(row) for row in plan.estimates],
        "trials": None if question.trials is None else list(question.trials),
        "search_seed": question.search_seed,
        "horizon": progress.horizon,
        "plan": question.plan_digest,
        "labels": [int(labels) for labels in progress.labels],
        "looks": list(progress.looks),
        "use": None if use is None else {**asdict(use), "elsewhere": list(use.elsewhere)},
        "arrays": {name: _digest(values) for name, values in arrays.items()},
    }
    if question.evaluated:  # absent, as in earlier files, where no race ended anything
        head["foretold"] = foretold_rows(question.evaluated)
    written = json.dumps({**head, "digest": digest_of(head)}, allow_nan=False)
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, head=np.array(written), **arrays)
    return buffer.getvalue()


def load(source: str | Path | bytes) -> Saved:
    """Read what `save` wrote, or the content of such a file, if it is whole."""
    try:
        with _opened(source) as file:
            check_archive(file, "The calibration", CertificateError)
            with np.load(file, allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        head = parse(str(arrays.pop("head")))
        stored = head.pop("digest")
        also(_HEAD, foretold=FORETOLD)(head, "the head")
        if "foretold" in head:
            tables = (v.shape for n, v in arrays.items() if n.startswith(_VALIDATION))
            check_foretold(head["foretold"], *next(s for s in (*tables, (0, 0)) if len(s) == 2))
    except RiskpilotError:
        raise
    except (*_UNREADABLE, AttributeError, ShapeError) as error:
        raise_alone(
            CertificateError(
                f"The calibration {_place(source)} cannot be read: {reason_of(error)}. "
                f"Give the path of a file that Calibration.save() wrote."
            )
        )
    whole_file = stored == digest_of(head) and head["format"] == _FORMAT
    if not whole_file or {name: _digest(v) for name, v in arrays.items()} != head["arrays"]:
        raise CertificateError(
            f"The calibration {_place(source)} was changed after it was written, or is of "
            f"another version: its digest does not match its content. Take an untouched copy."
        )
    return _saved(head, arrays)


def check_same_plan(source: str | Path | bytes, saved: Saved, question: Question) -> None:
    """Refuse labels of another plan than the one that the validation losses lead to."""
    if question.plan_digest != saved.plan_digest:
        raise CertificateError(
            f"The calibration {_place(source)} was begun with another plan than its validation "
            f"losses lead to here. Read it with the versions that wrote it."
        )


def unusable(source: str | Path | bytes, error: RiskpilotError) -> CertificateError:
    """Make the error for a file that holds what no calibration can be made of."""
    return CertificateError(
        f"The calibration {_place(source)} holds what no Calibration can be made of: {error} Take "
        f"a file that Calibration.save() wrote."
    )


def _saved(head: Mapping[str, Any], arrays: Mapping[str, Array]) -> Saved:
    """Freeze the plan again, and check that it is the one that the labels are about."""
    validation = {k.removeprefix(_VALIDATION): v for k, v in arrays.items() if k[:1] == "v"}
    table = {k.removeprefix(_LABELS): v for k, v in arrays.items() if k[:1] == "l"}
    scores = {k.removeprefix(_FRESH): v for k, v in arrays.items() if k[:1] == "f"}
    judge = {"unlabelled": scores, "ids": arrays.get(_FRESH_IDS)} if scores else None
    estimates = None if head["estimates"] is None else np.array(head["estimates"])
    frozen = frozen_again(
        Problem.from_dict(head["problem"]),
        validation,
        head["configs"],
        head["seed"],
        order=head["order"],
        entropy=head["entropy"],
        estimates=estimates,
        judged=tuple(scores),
        spend=head["spend"],
        space=head["space"],
        trials=None if head["trials"] is None else tuple(head["trials"]),
        search_seed=head["search_seed"],
        evaluated=evaluated_rows(head.get("foretold")),
    )
    use = head["use"]
    return Saved(
        replace(frozen, ids=arrays.get(_SEEN_IDS)),
        head["horizon"],
        head["plan"],
        None if use is None else Use(**{**use, "elsewhere": tuple(use["elsewhere"])}),
        tuple(head["labels"]),
        tuple(head["looks"]),
        table,
        judge,
    )


def _opened(source: str | Path | bytes) -> BinaryIO:
    """Open a file, or its content, for reading."""
    return io.BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb")


def _place(source: str | Path | bytes) -> str:
    """Say where a calibration is read from."""
    return "of a pickle" if isinstance(source, bytes) else shown_safely(source)


def _digest(values: Array) -> str:
    """The digest of an array, with its type and shape."""
    head = f"{values.dtype.str}:{values.shape}:".encode()
    return hashlib.sha256(head + np.ascontiguousarray(values).tobytes()).hexdigest()
