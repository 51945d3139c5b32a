// What the failures of a door's own calls are at /dav/.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientError, UnknownOutcome } from "#client/terminal/client-error.ts";
import { davRefusalOf } from "./refusals.ts";

test("a server that was lost within what is not done twice is told from one that does not answer", () => {
  const lost = new ClientError("NETWORK", "the server 127.0.0.1:1 does not answer (lost)");
  const { status, message } = davRefusalOf(new UnknownOutcome(lost)) ?? {};
  assert.equal(status, 503);
  assert.match(message ?? "", /may have done this, or not; look before you try again$/);
  assert.match(davRefusalOf(lost)?.message ?? "", /try again in a moment$/);
});
