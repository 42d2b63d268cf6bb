"""Early warnings: has a skill lost ground since the stage's start? Numbers and states only; `probing` feeds them.

The same decisions as `src/domain/flags` (fixtures: `test/fixtures/protocol/flags`). A *series* is one skill × split,
its *panel* the probe rows that every look scores, a *look* a probe point after step 0.
"""
