"""Whether a series can be watched at all, and the sentence that says why not: the same as the editor's."""

from __future__ import annotations

import math

from seesaw_runner.flags.defaults import MIN_ACCURACY, MIN_ROWS
from seesaw_runner.flags.statistics import wilson_lower


def why_not_measurable(
    *,
    detector: str,
    rows: int,
    dropped: int,
    n: int,
    right: int,
    checked: int,
    alternatives: int,
    noise: float,
    tolerance: float,
    unit: str,
) -> str | None:
    """None when it can. rows: of the probe set, dropped of them trained on; n: what is left, groups counting once.
    right of checked: the check at the start. alternatives: kept a token. noise, tolerance: as the detector's `limits`.
    """
    if n < MIN_ROWS:
        also = "also occur in this run's training or replay data"
        if n == 0 and dropped > 0:
            return f"All {dropped} probe rows {also}, so they would hide forgetting. Add probes that are in neither."
        if dropped > 0:
            left = f"Only {n} probe rows are left; {dropped} of {rows} {also}."
            return f"{left} Add probes that are in neither."
        return f"Only {n} probe rows could be scored; at least {MIN_ROWS} are needed. Add probes."
    if wilson_lower(right, checked) < MIN_ACCURACY:
        where = f"({right} of {checked} right)"
        return f"The skill was not there at the stage's start {where}, so there is nothing to forget."
    if detector != "nll" and alternatives < 2:
        return (
            "The traces keep fewer than two alternatives a token, so there are no decision margins. Set probe.top_k to "
            "at least 2."
        )
    if noise > tolerance and (tolerance > 0 or detector == "nll"):
        limits = f"Scoring noise of {_three_digits(noise)} {unit} exceeds the tolerance of {_three_digits(tolerance)}."
        return f"{limits} Score in float32 or raise the tolerance."
    return None


def _three_digits(value: float) -> str:
    """As JavaScript's String(Number(value.toPrecision(3)))."""
    rounded = float(f"{value:.3g}")
    if rounded == 0 or not math.isfinite(rounded):
        return "0" if rounded == 0 else str(rounded)
    if abs(rounded) < 1e-6:
        mantissa, _, exponent = f"{rounded:.2e}".partition("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    text = f"{rounded:.9f}" if abs(rounded) < 1 else f"{rounded:.2f}"
    return text.rstrip("0").rstrip(".")
