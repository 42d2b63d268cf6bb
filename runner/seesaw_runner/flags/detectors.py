"""The detectors by name."""

from __future__ import annotations

from seesaw_runner.flags.boundary_shift import BoundaryShift
from seesaw_runner.flags.expected_accuracy import ExpectedAccuracy
from seesaw_runner.flags.loss_limit import LossLimit
from seesaw_runner.flags.sequence_nll import SequenceNll
from seesaw_runner.flags.sum_of_e_values import SumOfEValues
from seesaw_runner.flags.verdict import OpenSeries

DETECTORS: dict[str, type[OpenSeries]] = {
    "limit": LossLimit,
    "nll": SequenceNll,
    "shift": BoundaryShift,
    "soft": ExpectedAccuracy,
    "strict": SumOfEValues,
}
