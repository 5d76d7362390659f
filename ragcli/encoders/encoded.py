"""What an encoder gives for documents: rows of whole numbers, and what scales them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows of whole numbers: `codes` (n, dim); a row's vector is codes · factor.

    `codes` are uint8 or uint16 counts (hash) or int8 (neural). `factors`: float32 (n,), None
    for an encoder whose columns are weighted by the corpus.
    """

    codes: NDArray[Any]
    factors: NDArray[np.float32] | None

    def take(self, rows: NDArray[Any]) -> Encoded:
        """The rows that `rows`, numbers or a mask, names."""
        return Encoded(self.codes[rows], None if self.factors is None else self.factors[rows])

    @staticmethod
    def join(parts: Sequence[Encoded]) -> Encoded:
        """The rows of all `parts`, of which there is at least one, in order."""
        import numpy as np

        factors = [part.factors for part in parts if part.factors is not None]
        return Encoded(
            np.concatenate([part.codes for part in parts]),
            np.concatenate(factors) if factors else None,
        )
