"""How many directions an update really uses: effective and stable rank, from its Gram matrix.

The Gram matrix of the shorter side is summed up in double precision while the update is read by rows. Where the rows
are the shorter side, the update of that one tensor is held whole, in float32.
"""

from __future__ import annotations

import torch

from seesaw_runner.weights.blocks import grid

#: A side longer than this has a Gram matrix of more than 2 GiB; such a tensor gets no rank.
LONGEST = 16384


class UpdateGram:
    """Given the rows of an update in order, then asked for its ranks."""

    def __init__(self, shape: tuple[int, ...]):
        self.rows, self.columns = grid(shape)
        self.side = min(self.rows, self.columns)
        self.measurable = 1 < self.side <= LONGEST
        self.sum = torch.zeros(self.columns, self.columns, dtype=torch.float64) if self._streams else None
        self.held: list[torch.Tensor] = []

    @property
    def _streams(self) -> bool:
        return self.measurable and self.columns <= self.rows

    def add(self, rows: torch.Tensor) -> None:
        if self.sum is not None:
            rows = rows.double()
            self.sum.addmm_(rows.T, rows)
        elif self.measurable:
            self.held.append(rows)

    def ranks(self) -> tuple[float | None, float | None]:
        """(effective rank, stable rank). The first is exp of the entropy of the singular values as shares of their sum,
        the second ‖Δ‖²/σ₁². None for no change, and for what is no matrix.
        """
        if not self.measurable:
            return None, None
        gram = self.sum
        if gram is None:
            whole = torch.cat(self.held).double()
            gram = whole @ whole.T
            self.held.clear()
        energy = torch.linalg.eigvalsh(gram).clamp_min(0)
        top = float(energy[-1])
        if top <= 0:
            return None, None
        # Below this an eigenvalue of the Gram matrix is rounding, not a direction.
        energy = torch.where(energy > top * self.side * 2.3e-16, energy, torch.zeros_like(energy))
        values = energy.sqrt()
        shares = values / values.sum()
        return float(torch.exp(torch.special.entr(shares).sum())), float(energy.sum() / top)
