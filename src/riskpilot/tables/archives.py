"""Tables of losses as NumPy archives, without pickles.

In an .npz file the arrays are named ``validation.error``, ``calibration.error`` and so on, with one
row per configuration; ``configs`` (JSON texts) says what the rows stand for. Where a race ended
evaluations, ``n_evaluated`` says how many validation examples were evaluated in each row; the
losses of the others are foretold.
"""

import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from riskpilot.common import (
    Array,
    check_archive,
    check_replaceable,
    parse,
    reason_of,
    replacing,
    shown_safely,
)
from riskpilot.errors import LossError, TableError, raise_alone, shown
from riskpilot.losses import LossMapping, plain_array, text_array
from riskpilot.tables.columns import SPLITS
from riskpilot.tables.configurations import parse_config
from riskpilot.tables.loss_table import LossTable

Config = Mapping[str, Any]

FORMAT = "riskpilot-losses/1"  # the format of the tables that `save_losses` writes

_BARE_ARRAY = b"\x93NUMPY"  # how a file of one array begins


def save_losses(
    path: str | Path,
    *,
    validation: LossMapping,
    calibration: LossMapping,
    configs: Iterable[Config] | None = None,
    n_evaluated: npt.ArrayLike | None = None,
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
    n_evaluated : array of shape (n,), optional
        How many of the validation examples were evaluated in each row, where a race ended some and
        foretold the other losses.

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
    ...     read_archive(path).configs
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
            f"Call it '{path.stem or 'losses'}.npz'."
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
    if n_evaluated is not None:
        arrays["n_evaluated"] = _whole_numbers(n_evaluated)
    arrays["format"] = np.array(FORMAT)
    check_replaceable(path, "table of losses", TableError, renewed="a table of losses")
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


def read_archive(path: Path) -> LossTable:
    """Read an archive of arrays."""
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
    others = {"configs", "n_evaluated", *(f"{split}_ids" for split in SPLITS)}
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
        arrays.get("n_evaluated"),
    )


def _whole_numbers(n_evaluated: npt.ArrayLike) -> Array:
    """Read the numbers of evaluated examples as an array, or refuse them."""
    try:
        array: Array = np.asarray(n_evaluated)
    except (TypeError, ValueError):
        array = np.empty(0, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TableError(
            f"n_evaluated has one whole number for each row of the losses, but it is "
            f"{shown(n_evaluated)}. Leave it out where all examples were evaluated."
        )
    return array


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


def _object_rule(name: str) -> str:
    """Say why an array of Python objects is refused."""
    return (
        f"The array {name!r} holds Python objects, and files with pickled objects can run code, so "
        f"they are refused. Save numbers or booleans: array.astype(float)."
    )


def _listed(names: Iterable[str]) -> str:
    """Write names in alphabetical order."""
    return ", ".join(sorted(names)) or "none"


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
