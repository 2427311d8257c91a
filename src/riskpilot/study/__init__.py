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
from riskpilot.study.kept.attributes import PROBLEM_KEY, attributes_of, problem_of, settings_of
from riskpilot.study.kept.records import validation_of
from riskpilot.study.kept.trials import Finished, finished, finished_among, split_trials
from riskpilot.study.labels.calibration import Calibration
from riskpilot.study.labels.reading import add_from_file
from riskpilot.study.limits import LimitSuggestion, set_limits, suggest_limits
from riskpilot.study.objectives import objective
from riskpilot.study.questions.asking import seal, select
from riskpilot.study.questions.audit import audit
from riskpilot.study.questions.question_ledger import ledger
from riskpilot.study.questions.verifying import verify
from riskpilot.study.recertifying import recertify
from riskpilot.study.sampler import GuidedSampler, sampler_for, search_snapshot
from riskpilot.study.settling import StopWhenSettled
from riskpilot.study.smoothing import smoothed_risks
from riskpilot.study.space import Space, check_choices, from_unit, n_values, to_unit
from riskpilot.study.status import QuestionStatus, RiskStatus, Status, study_status
from riskpilot.study.storages import as_storage, exclusive, existing_storage, file_lock
from riskpilot.study.telling import tell
from riskpilot.study.workers import work

__all__ = [
    "PROBLEM_KEY",
    "Calibration",
    "Finished",
    "GuidedSampler",
    "LimitSuggestion",
    "QuestionStatus",
    "RiskStatus",
    "Space",
    "Status",
    "StopWhenSettled",
    "add_from_file",
    "adopt",
    "as_storage",
    "attributes_of",
    "audit",
    "check_choices",
    "create_study",
    "exclusive",
    "existing_storage",
    "export_losses",
    "file_lock",
    "finished",
    "finished_among",
    "from_unit",
    "hide_password",
    "is_storage",
    "ledger",
    "load_study",
    "n_values",
    "objective",
    "open_study",
    "problem_of",
    "recertify",
    "sampler_for",
    "seal",
    "search_snapshot",
    "select",
    "set_limits",
    "settings_of",
    "smoothed_risks",
    "split_trials",
    "study_losses",
    "study_status",
    "suggest_limits",
    "tell",
    "to_unit",
    "validation_of",
    "verify",
    "work",
]
