// What a log line and a screen say of an error.
import assert from "node:assert/strict";
import { test } from "node:test";
import { errorText } from "./log.ts";

test("an error is told with its causes, and of several ends that failed each one, the first that failed first", async () => {
  assert.equal(errorText(new Error("it broke", { cause: new Error("no space") })), "it broke: no space");
  const refused = new Error("nothing listens there", { cause: new Error("ECONNREFUSED") });
  const call = new Error("cannot connect: nothing listens there", { cause: refused });
  assert.equal(errorText(call), "cannot connect: nothing listens there: ECONNREFUSED", "no cause twice");
  assert.equal(errorText(new Error("it broke", { cause: new Error("") })), "it broke: ");
  assert.equal(errorText("a text"), "a text");
  const ends = new AsyncDisposableStack();
  for (const name of ["third", "second", "first"]) {
    ends.defer(() => {
      throw new Error(name);
    });
  }
  const failure: unknown = await ends.disposeAsync().catch((error: unknown) => error);
  assert.equal(errorText(failure), "first; second; third");
});
