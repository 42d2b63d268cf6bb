"""Every number of the early warning that somebody chose. What the battery decided is here and nowhere else in Python;
the same in `src/domain/flags/defaults.ts`.
"""

from __future__ import annotations

#: What watches a series where a pipeline names nothing else, and the margins that it looks at.
DETECTOR = "limit"
MARGIN = "all"
#: `limit`, `soft`: nats of margin that a logistic step of the expected accuracy is wide.
SCALE = 1.0
#: False alarms allowed in a run over all series and looks; harmless loss in points of accuracy, and in nats for `nll`.
ALPHA = 0.1
TOLERANCE = 2.0
TOLERANCE_NATS = 0.2
#: `limit`: (budget of false alarms per run, points of expected accuracy that at most this share of the healthy runs of
#: the battery's bank A went beyond, on 64 rows). A smaller budget than the first has the first one's limit.
LOSS_LIMITS = ((0.02, 9.75), (0.05, 4.5), (0.1, 4.36), (0.15, 3.48), (0.2, 2.94), (0.3, 2.39))

#: Rows (clusters) of a panel: fewer than the first are only shown, fewer than the second make a weak panel.
MIN_ROWS = 32
GOOD_ROWS = 64
#: Lower end of the 95 % Wilson interval of the accuracy at the start: below it there is nothing to forget.
MIN_ACCURACY = 0.2

#: Margins, and their change, are cut here (nats).
MARGIN_CLIP = 50.0
CHANGE_CLIP = 2.0
#: A row whose answer became impossible counts as this many nats, so that means stay finite.
NLL_CLIP = 1000.0
#: The density of the start margins at zero is at least this.
MIN_DENSITY = 0.02
RESAMPLES = 4000
#: An alarm needs an estimate beyond so many standard errors of the scoring noise.
NOISE_ERRORS = 3.0
#: One-sided level of the bounds that are shown, and that a recovery is judged by.
SHOWN_LEVEL = 0.1
#: Looks in a row whose bound excludes the null's edge before a flag is recovered.
CALM_LOOKS = 2
#: `strict`: bets, as shares of the largest one allowed.
BETS = (0.02, 0.95, 12)
#: Share of rows whose answer changes either way without a loss, for telling what a check can see before it is run.
USUAL_CHURN = 0.05
