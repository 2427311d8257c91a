"""Optuna's side: studies that carry a problem, their sampler, their losses, their selection."""

from riskpilot.study.as_tables import (
    export_losses,
    hide_password,
    is_storage,
    open_study,
    study_losses,
)
from riskpilot.study.asking import seal, select
from riskpilot.study.audit import audit, verify
from riskpilot.study.creation import (
    LimitSuggestion,
    create_study,
    load_study,
    objective,
    set_limits,
    suggest_limits,
)
from riskpilot.study.question_ledger import ledger
from riskpilot.study.records import PROBLEM_KEY, SETTINGS_KEY, problem_of, record_of, validation_of
from riskpilot.study.sampler import (
    GUIDED,
    HVI,
    ONE_SIDED,
    PAPER,
    GuidedSampler,
    Strategy,
    default_pool_size,
    objectives,
    picture,
    sampler_for,
    smoothed_risks,
    split_trials,
    uniform,
)
from riskpilot.study.space import Space, from_unit, n_values, to_unit
from riskpilot.study.status import QuestionStatus, Status, study_status
from riskpilot.study.storages import as_storage
from riskpilot.study.workers import work

__all__ = [
    "GUIDED",
    "HVI",
    "ONE_SIDED",
    "PAPER",
    "PROBLEM_KEY",
    "SETTINGS_KEY",
    "GuidedSampler",
    "LimitSuggestion",
    "QuestionStatus",
    "Space",
    "Status",
    "Strategy",
    "as_storage",
    "audit",
    "create_study",
    "default_pool_size",
    "export_losses",
    "from_unit",
    "hide_password",
    "is_storage",
    "ledger",
    "load_study",
    "n_values",
    "objective",
    "objectives",
    "open_study",
    "picture",
    "problem_of",
    "record_of",
    "sampler_for",
    "seal",
    "select",
    "set_limits",
    "smoothed_risks",
    "split_trials",
    "study_losses",
    "study_status",
    "suggest_limits",
    "to_unit",
    "uniform",
    "validation_of",
    "verify",
    "work",
]
