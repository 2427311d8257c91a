"""Tables of losses on disk: read from .npz, .csv and .parquet files, written as .npz.

In an .npz file the arrays are named ``validation.error``, ``calibration.error`` and so on, with one
row per configuration; ``configs`` (JSON texts) says what the rows stand for. A .csv or .parquet
file has one row per configuration and example, in any order: the columns ``split``, ``config``
and, where there are ids, ``example``; every other column holds the losses of one quantity, or
what stands beside them: groups, weights, the losses of a reference.
"""

import csv
import importlib
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from riskpilot.common import check_archive, check_file, parse, reason_of, replacing, shown_safely
from riskpilot.common.arrays import Array
from riskpilot.errors import LossError, TableError, raise_alone, shown
from riskpilot.losses import LossMapping, NumbersOfTexts, plain_array, text_array
from riskpilot.tables.long import (
    NOT_LOSSES,
    SPLITS,
    Labels,
    LongTable,
    LossTable,
    check_header,
    parse_config,
    tabulate,
)

Config = Mapping[str, Any]

FORMAT = "riskpilot-losses/1"  # the format of the tables that `save_losses` writes

_BARE_ARRAY = b"\x93NUMPY"  # how a file of one array begins
_CHUNK = 50_000  # rows of text that are held at a time
_WORDS = {"": "nan", "true": "1", "false": "0", "null": "nan", "none": "nan", "na": "nan"}


def read_losses(path: str | Path, groups: Collection[str] = ()) -> LossTable:
    """Read a table of losses; the ending of the name says how it is written.

    Parameters
    ----------
    path : str or Path
        An .npz, .csv or .parquet file.
    groups : collection of str, default ()
        The columns that name groups or labels of examples. They are read as they are written: "1",
        "01" and "1.0" are different groups. Every other column holds numbers.

    Returns
    -------
    LossTable
        One row per configuration; ``validation`` and ``calibration`` go to `select_from_losses`.

    Raises
    ------
    TableError
        If the file cannot be read as a table of losses.
    """
    if not isinstance(path, str | Path):
        raise TableError(
            f'path is the file of the losses, but it is {shown(path)}. Write "losses.npz".'
        )
    path = Path(path)
    readers: dict[str, Callable[[Path, Collection[str]], LossTable]] = {
        ".npz": _read_npz,
        ".csv": _read_csv,
        ".parquet": _read_parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise TableError(
            f"A table of losses is an .npz, .csv or .parquet file, but this is "
            f"{shown_safely(path)}. Save the losses with riskpilot.tables.save_losses, or as CSV "
            f"or Parquet."
        )
    if not path.exists():
        raise TableError(
            f"There is no file {shown_safely(path)}. Give the path of a table of losses, relative "
            f"to the folder in which the command runs."
        )
    try:
        check_file(path, "The table of losses", TableError)
        return reader(path, groups)
    except OSError as error:
        raise_alone(
            TableError(
                f"{shown_safely(path)} cannot be read: {reason_of(error)}. Check its permissions, "
                f"or copy it again."
            )
        )


def save_losses(
    path: str | Path,
    *,
    validation: LossMapping,
    calibration: LossMapping,
    configs: Iterable[Config] | None = None,
) -> Path:
    """Write a table of losses as a compressed .npz file without pickles.

    Parameters
    ----------
    path : str or Path
        The file to write; its name ends in .npz.
    validation : mapping of str to array
        Validation losses, as `select_from_losses` takes them.
    calibration : mapping of str to array
        Calibration losses, as `select_from_losses` takes them.
    configs : iterable of mappings, optional
        What the rows stand for.

    Returns
    -------
    Path
        The same path.

    Raises
    ------
    TableError
        If the name ends in anything else, the file cannot be written, or an array holds Python
        objects.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_losses(
    ...         Path(folder) / "losses.npz",
    ...         validation={"error": np.zeros((2, 5)), "cost": np.array([3.0, 1.0])},
    ...         calibration={"error": np.zeros((2, 4))},
    ...         configs=[{"size": "large"}, {"size": "small"}],
    ...     )
    ...     read_losses(path).configs
    ({'size': 'large'}, {'size': 'small'})
    """
    if not isinstance(path, str | Path):
        raise TableError(
            f"path is the file that the losses are written to, but it is {shown(path)}. "
            f'Write "losses.npz".'
        )
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise TableError(
            f"Losses are written as an .npz file, but the name is {str(path)!r}. "
            f"Call it {path.with_suffix('.npz').name!r}."
        )
    arrays: dict[str, Array] = {}
    for split, losses in (("validation", validation), ("calibration", calibration)):
        for name, values in losses.items():
            try:
                array = plain_array(values, f"{split}.{name}")
                if array.dtype.kind in "UST":
                    array = text_array(values, f"{split}.{name}")
            except LossError as error:
                raise TableError(str(error)) from error
            if array.dtype.hasobject:
                raise TableError(_object_rule(f"{split}.{name}"))
            arrays[f"{split}.{name}"] = array
    if configs is not None:
        arrays["configs"] = np.array([_config_text(config) for config in configs], dtype=np.str_)
    arrays["format"] = np.array(FORMAT)
    try:
        with replacing(path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
    except (OSError, ValueError) as error:  # a name may hold what no file system takes
        raise_alone(
            TableError(
                f"The losses cannot be written to {shown_safely(path)}: {reason_of(error)}. Name a "
                f"file in a folder that exists, that you may write to and that has space."
            )
        )
    return path


def _read_npz(path: Path, groups: Collection[str]) -> LossTable:
    """Read an archive of arrays; groups in it are texts already."""
    try:
        # Opened here, because numpy leaves a file open where it turns out to be cut short.
        with path.open("rb") as file:
            if file.read(len(_BARE_ARRAY)) == _BARE_ARRAY:
                raise TableError(
                    f"{path.name!r} holds one bare array, but a table of losses is an archive of "
                    f"named arrays. Write it with riskpilot.tables.save_losses."
                )
            check_archive(file, f"The table of losses {path.name!r}", TableError)
            archive = np.load(file, allow_pickle=False)
            arrays = {name: _member(archive, name) for name in archive.files}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(
            f"{path.name!r} is no complete .npz file ({error}). It may have been cut short while "
            f"it was written or copied: take the original again."
        ) from error
    _check_format(path.name, arrays.pop("format", None))
    splits: dict[str, dict[str, Array]] = {split: {} for split in SPLITS}
    others = {"configs", *(f"{split}_ids" for split in SPLITS)}
    for key, array in arrays.items():
        split, _, name = key.partition(".")
        if split in splits and name:
            splits[split][name] = array
        elif key not in others:
            raise TableError(
                f"{path.name!r}: arrays are named by split and quantity, such as "
                f"'validation.error' or 'calibration.error', or 'configs', but one is {key!r}. "
                f"Rename or remove it."
            )
    for split in SPLITS:
        if not splits[split]:
            raise TableError(
                f"{path.name!r} has no {split} losses; it has {_listed(arrays)}. Add an array "
                f"'{split}.NAME' with one row per configuration for each risk."
            )
    configs = arrays.get("configs")
    return LossTable(
        splits["validation"],
        splits["calibration"],
        None if configs is None else tuple(map(parse_config, np.atleast_1d(configs).tolist())),
        arrays.get("validation_ids"),
        arrays.get("calibration_ids"),
    )


def _check_format(name: str, found: Array | None) -> None:
    """Refuse a table that was written in another format; one that was made by hand says none."""
    if found is not None and str(found) != FORMAT:
        raise TableError(
            f"{name!r} is a table of losses in the format {shown(str(found))}, and this version "
            f"reads {FORMAT!r}. Read it with the version of riskpilot that wrote it."
        )


def _member(archive: Any, name: str) -> Array:
    """Read one array of an archive, and nothing that is pickled."""
    try:
        array: Array = archive[name]
    except ValueError as error:
        if "allow_pickle" in str(error):
            raise TableError(_object_rule(name)) from error
        raise
    if not isinstance(array, np.ndarray):
        raise TableError(
            f"{name!r} in the .npz file is no array. Write the file with "
            f"riskpilot.tables.save_losses."
        )
    return array


def _read_csv(path: Path, groups: Collection[str]) -> LossTable:
    """Read a CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return tabulate(path.name, _csv_columns(path.name, file, groups))
    except UnicodeDecodeError as error:
        raise TableError(
            f"{path.name!r} is not text in UTF-8 ({error.reason} at byte {error.start}). Save it "
            f"as CSV with UTF-8 encoding."
        ) from error
    except csv.Error as error:
        raise TableError(
            f"{path.name!r} is no CSV file that can be read: {error}. Use commas between fields "
            f"and double quotes around text that holds commas."
        ) from error


class _Codes:
    """Codes texts as whole numbers: each new text gets the next one."""

    def __init__(self) -> None:
        self.labels: dict[str, int] = {}
        self.chunks: list[Array] = []

    def add(self, texts: Iterable[str]) -> None:
        """Code some more texts."""
        labels = self.labels
        codes = [labels.setdefault(text, len(labels)) for text in texts]
        self.chunks.append(np.array(codes, dtype=np.int64))

    def all(self) -> Array:
        """Return the codes of all texts so far."""
        return np.concatenate(self.chunks) if self.chunks else np.zeros(0, dtype=np.int64)


def _csv_columns(name: str, file: io.TextIOWrapper, groups: Collection[str]) -> LongTable:
    """Read the columns of a CSV file, some rows at a time."""
    reader = csv.reader(file)
    header = [field.strip() for field in next(reader, [])]
    check_header(name, header)
    coded = {field: _Codes() for field in header if field in NOT_LOSSES or field in groups}
    numbers: dict[str, list[Array]] = {field: [] for field in header if field not in coded}
    start = 2  # the line of the file at which a chunk begins, for messages
    for rows in _chunks(reader):
        rows = [row for row in rows if row]  # blank lines say nothing
        try:
            columns = list(zip(*rows, strict=True))
        except ValueError:
            columns = []
        if rows and len(columns) != len(header):
            odd = next(row for row in rows if len(row) != len(header))
            raise TableError(
                f"{name!r}: every row needs {len(header)} fields, one per column, but the row "
                f"{_shorten(','.join(odd))!r} has {len(odd)}. Complete it, or quote its commas."
            )
        for field, column in zip(header, columns, strict=False):
            if field == "split":
                coded[field].add(text.strip() for text in column)
            elif field in coded:  # names are what they are: " a" is not "a"
                coded[field].add(column)
            else:
                numbers[field].append(_to_numbers(name, field, column, start))
        start += len(rows)
    labels = {field: Labels(list(c.labels), c.all()) for field, c in coded.items()}
    values: dict[str, Array] = {
        field: np.concatenate(parts or [np.zeros(0)]).view(NumbersOfTexts)
        for field, parts in numbers.items()
    }
    names = {
        field: _without_blanks(labels.pop(field))
        for field in groups
        if field in labels and field not in NOT_LOSSES
    }
    return LongTable(labels, values, names)


def _without_blanks(labels: Labels) -> Labels:
    """Mark empty fields as missing: they name no group, and are refused where groups are read."""
    return Labels([value if value.strip() else None for value in labels.values], labels.codes)


def _chunks(reader: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    """Part the rows of a file into pieces that fit into memory."""
    while rows := list(islice(reader, _CHUNK)):
        yield rows


def _to_numbers(name: str, field: str, column: Sequence[str], start: int) -> Array:
    """Read texts as numbers; ``start`` is the line of the first, for messages."""
    try:
        return np.array(column, dtype=np.str_).astype(np.float64)
    except ValueError:
        pass  # words such as True, or empty fields: rarer, and slower to read
    result = np.empty(len(column))
    for i, text in enumerate(column):
        word = text.strip()
        try:
            result[i] = float(_WORDS.get(word.lower(), word))
        except ValueError:
            raise TableError(
                f"{name!r}: the losses of {field!r} must be numbers, or empty where there is "
                f"none, but line {start + i} has {_shorten(text)!r}. Correct or remove it; a "
                f"column of groups is named: read_losses(path, groups=[{field!r}])."
            ) from None
    return result


def _read_parquet(path: Path, groups: Collection[str]) -> LossTable:
    """Read a Parquet file."""
    # The one door to an optional package: only those who read Parquet need to install it.
    try:
        module = importlib.import_module("riskpilot.tables.parquet")
    except ModuleNotFoundError as error:
        raise TableError(
            f"Reading {path.name!r} needs the package {error.name!r}, which is not installed. "
            f"Run pip install 'riskpilot[parquet]', or save the table as CSV or .npz."
        ) from error
    table: LongTable = module.read_columns(path, groups)
    return tabulate(path.name, table)


def _object_rule(name: str) -> str:
    """Say why an array of Python objects is refused."""
    return (
        f"The array {name!r} holds Python objects, and files with pickled objects can run code, so "
        f"they are refused. Save numbers or booleans: array.astype(float)."
    )


def _listed(names: Iterable[str]) -> str:
    """Write names in alphabetical order."""
    return ", ".join(sorted(names)) or "none"


def _shorten(text: str) -> str:
    """Cut a text to at most 60 characters."""
    return text if len(text) <= 60 else f"{text[:57]}..."


def _config_text(config: Config) -> str:
    """Write a configuration as strict JSON."""
    try:
        text = json.dumps(dict(config), default=_to_python, allow_nan=False)
        parse(text)  # what cannot be read back must not be written
    except (RecursionError, TypeError, ValueError) as error:
        raise TableError(
            f"A table keeps configurations as JSON, with finite numbers and whole texts, but "
            f"{shown(config)} cannot be kept: {error}. Write its values as numbers or texts."
        ) from None
    return text


def _to_python(value: Any) -> Any:
    """Turn what JSON does not know into what it knows."""
    return value.item() if isinstance(value, np.generic) else str(value)
