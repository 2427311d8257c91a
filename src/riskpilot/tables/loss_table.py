"""A table of losses in memory, one row per configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from riskpilot.common import Array
from riskpilot.errors import TableError


@dataclass(frozen=True)
class LossTable:
    """The losses of n configurations, as `select_from_losses` takes them.

    Attributes
    ----------
    validation : dict of str to array
        Validation losses: risks of shape (n, k), the free objective of shape (n,) or (n, k), and
        what stands beside the losses of shape (k,).
    calibration : dict of str to array
        Calibration losses: risks of shape (n, m), and what stands beside them of shape (m,).
    configs : tuple of dict, optional
        What the n rows stand for; None where the file does not say.
    validation_ids : array, optional
        The ids of the k validation examples, where the file gives them.
    calibration_ids : array, optional
        The ids of the m calibration examples, where the file gives them.
    n_evaluated : array, optional
        How many of the k validation examples were evaluated of each configuration, shape (n,),
        where a race ended some and foretold the other losses.
    """

    validation: dict[str, Array]
    calibration: dict[str, Array]
    configs: tuple[dict[str, Any], ...] | None = None
    validation_ids: Array | None = None
    calibration_ids: Array | None = None
    n_evaluated: Array | None = None

    def only(self, risks: Sequence[str], minimize: str) -> "LossTable":
        """Keep the named quantities alone.

        Parameters
        ----------
        risks : sequence of str
            The names of risks, and of what stands beside their losses.
        minimize : str
            The name of the free objective, which calibration need not have.

        Returns
        -------
        LossTable
            The table without the other quantities.

        Raises
        ------
        TableError
            If a quantity is missing.
        """
        for split, losses in (("validation", self.validation), ("calibration", self.calibration)):
            wanted = [*risks, minimize] if split == "validation" else risks
            missing = [name for name in wanted if name not in losses]
            if missing:
                raise TableError(
                    f"The table has no {split} losses of {missing[0]!r}; it has "
                    f"{', '.join(sorted(losses))}. Name a quantity of the table, or add its losses."
                )
        kept = [*risks, minimize]
        return LossTable(
            {name: self.validation[name] for name in kept},
            {name: self.calibration[name] for name in kept if name in self.calibration},
            self.configs,
            self.validation_ids,
            self.calibration_ids,
            self.n_evaluated,
        )
