"""Small helpers that know nothing of risks: arrays, digests, words, threads, notebook cards."""

from riskpilot.common.arguments import (
    exact,
    finite_number,
    is_flag,
    is_name,
    one_minus,
    percent,
)
from riskpilot.common.arrays import Array, BoolArray, FloatArray, IntArray, Places
from riskpilot.common.json_shapes import (
    Shape,
    ShapeError,
    anything,
    digest,
    flag,
    integer,
    list_of,
    mapping_of,
    moment,
    number,
    optional,
    real,
    record,
    text,
    whole,
)
from riskpilot.common.notebook import card
from riskpilot.common.strict_json import canonical, digest_of, parse, plain, plain_configs
from riskpilot.common.threads import one_thread
from riskpilot.common.time_limit import TimeLimitError, within

__all__ = [
    "Array",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Places",
    "Shape",
    "ShapeError",
    "TimeLimitError",
    "anything",
    "canonical",
    "card",
    "digest",
    "digest_of",
    "exact",
    "finite_number",
    "flag",
    "integer",
    "is_flag",
    "is_name",
    "list_of",
    "mapping_of",
    "moment",
    "number",
    "one_minus",
    "one_thread",
    "optional",
    "parse",
    "percent",
    "plain",
    "plain_configs",
    "real",
    "record",
    "text",
    "whole",
    "within",
]
