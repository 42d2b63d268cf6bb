import assert from "node:assert/strict";

/** The driver must report these as a failure: a driver that stays green here proves nothing elsewhere. */
describe("planted", () => {
  it("passes", () => {});

  it("fails on purpose", () => {
    assert.equal(1, 2, "planted failure");
  });
});
