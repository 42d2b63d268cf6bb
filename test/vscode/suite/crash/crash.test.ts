/** The driver must notice that the extension host is gone although the workbench then reports success. */
describe("planted crash", () => {
  it("ends the extension host", () => {
    process.abort();
  });
});
