import assert from "node:assert/strict";
import { test } from "node:test";
import { raySecret } from "../../../../src/host/targets/raySecret.ts";

test("a token belongs to one address, however that is written; another one does not get it", () => {
  assert.equal(raySecret("http://Head:8265/"), raySecret("http://head:8265"));
  assert.equal(new Set(["http://head:8265", "https://head:8265", "http://head:8266", "http://other:8265"].map(raySecret)).size, 4);
});
