"""Small helpers that know nothing of risks: arrays, digests, words, threads, notebook cards."""

from riskpilot.common.arguments import (
    bound_in_words,
    confidence,
    exact,
    finite_number,
    how_many,
    is_flag,
    is_name,
    on_its_side,
    one_minus,
    percent,
)
from riskpilot.common.arrays import Array, BoolArray, FloatArray, IntArray, Places
from riskpilot.common.file_turns import one_at_a_time
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
from riskpilot.common.kept_files import LEDGER, LOSSES, check_replaceable, kept_in
from riskpilot.common.notebook import card
from riskpilot.common.ordinary_files import open_ordinary, other_than_file
from riskpilot.common.passwords import hide_password, shown_safely, without_password
from riskpilot.common.served import unusable_address
from riskpilot.common.shown_line import ShownLine, shown_steps
from riskpilot.common.size_limits import (
    check_archive,
    check_file,
    check_memory,
    read_json_file,
    read_json_stream,
    read_stream,
)
from riskpilot.common.strict_json import (
    canonical,
    digest_of,
    for_programs,
    is_whole_text,
    nearly_equal,
    parse,
    plain,
    plain_configs,
)
from riskpilot.common.threads import one_thread
from riskpilot.common.time_limit import TimeLimitError, within
from riskpilot.common.unwarned import unwarned
from riskpilot.common.whole_files import reason_of, replacing, write_whole

__all__ = [
    "LEDGER",
    "LOSSES",
    "Array",
    "BoolArray",
    "FloatArray",
    "IntArray",
    "Places",
    "Shape",
    "ShapeError",
    "ShownLine",
    "TimeLimitError",
    "anything",
    "bound_in_words",
    "canonical",
    "card",
    "check_archive",
    "check_file",
    "check_memory",
    "check_replaceable",
    "confidence",
    "digest",
    "digest_of",
    "exact",
    "finite_number",
    "flag",
    "for_programs",
    "hide_password",
    "how_many",
    "integer",
    "is_flag",
    "is_name",
    "is_whole_text",
    "kept_in",
    "list_of",
    "mapping_of",
    "moment",
    "nearly_equal",
    "number",
    "on_its_side",
    "one_at_a_time",
    "one_minus",
    "one_thread",
    "open_ordinary",
    "optional",
    "other_than_file",
    "parse",
    "percent",
    "plain",
    "plain_configs",
    "read_json_file",
    "read_json_stream",
    "read_stream",
    "real",
    "reason_of",
    "record",
    "replacing",
    "shown_safely",
    "shown_steps",
    "text",
    "unusable_address",
    "unwarned",
    "whole",
    "within",
    "without_password",
    "write_whole",
]
