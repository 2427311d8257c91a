"""Optuna's side: studies that carry a problem, their sampler, their losses, their selection."""

from riskpilot.study.adopting import adopt
from riskpilot.study.as_tables import (
    export_losses,
    hide_password,
    is_storage,
    open_study,
    study_losses,
)
from riskpilot.study.creation import create_study, load_study
from riskpilot.study.forecast import (
    ahead_in_words,
    chance_in_words,
    counts_in_words,
    expected_in_words,
    gain_in_words,
    outlook_of,
)
from riskpilot.study.kept.attributes import (
    PROBLEM_KEY,
    WATCH_KEY,
    attributes_of,
    problem_of,
    settings_of,
)
from riskpilot.study.kept.records import validation_of
from riskpilot.study.kept.trials import Finished, finished, finished_among, split_trials
from riskpilot.study.labels.calibration import Calibration
from riskpilot.study.labels.reading import FileColumns, calibration_from_files
from riskpilot.study.limits import LimitSuggestion, set_limits, suggest_limits
from riskpilot.study.objectives import objective
from riskpilot.study.progress import ShowProgress
from riskpilot.study.questions.asking import seal, select
from riskpilot.study.questions.audit import audit
from riskpilot.study.questions.question_ledger import ledger
from riskpilot.study.questions.verifying import verify
from riskpilot.study.recertifying import recertify
from riskpilot.study.sampler import GuidedSampler
from riskpilot.study.searching import StudyGoneError, search_so_far, still
from riskpilot.study.settling import StopWhenSettled
from riskpilot.study.smoothing import smoothed_risks
from riskpilot.study.space import Space, check_choices, from_unit, n_values, to_unit
from riskpilot.study.status import QuestionStatus, RiskStatus, Status, study_status
from riskpilot.study.steering import sampler_for, search_snapshot
from riskpilot.study.storages import (
    SameFile,
    StorageUnreachableError,
    as_storage,
    exclusive,
    existing_storage,
    file_lock,
    file_of,
    hurried,
    silent_trials,
)
from riskpilot.study.telling import tell
from riskpilot.study.workers import work

__all__ = [
    "PROBLEM_KEY",
    "WATCH_KEY",
    "Calibration",
    "FileColumns",
    "Finished",
    "GuidedSampler",
    "LimitSuggestion",
    "QuestionStatus",
    "RiskStatus",
    "SameFile",
    "ShowProgress",
    "Space",
    "Status",
    "StopWhenSettled",
    "StorageUnreachableError",
    "StudyGoneError",
    "adopt",
    "ahead_in_words",
    "as_storage",
    "attributes_of",
    "audit",
    "calibration_from_files",
    "chance_in_words",
    "check_choices",
    "counts_in_words",
    "create_study",
    "exclusive",
    "existing_storage",
    "expected_in_words",
    "export_losses",
    "file_lock",
    "file_of",
    "finished",
    "finished_among",
    "from_unit",
    "gain_in_words",
    "hide_password",
    "hurried",
    "is_storage",
    "ledger",
    "load_study",
    "n_values",
    "objective",
    "open_study",
    "outlook_of",
    "problem_of",
    "recertify",
    "sampler_for",
    "seal",
    "search_snapshot",
    "search_so_far",
    "select",
    "set_limits",
    "settings_of",
    "silent_trials",
    "smoothed_risks",
    "split_trials",
    "still",
    "study_losses",
    "study_status",
    "suggest_limits",
    "tell",
    "to_unit",
    "validation_of",
    "verify",
    "work",
]
