// Places of calls: users who fill theirs leave nodes their own, in progress and while requests arrive.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ARRIVING_CALLS, CALLS_OF_NODE, DEFAULT_SERVER_LIMITS, MODEST_CALLS } from "#wire/framing/limits.ts";
import { Code } from "#wire/framing/status.ts";
import { CallPlaces, type PlacedCall } from "./call-places.ts";
import type { Standing } from "./standing.ts";

const FULL = { code: Code.RESOURCE_EXHAUSTED };

const callOf = (kind: Standing["kind"], party: string): PlacedCall => ({
  standing: { kind, party },
  cancel: () => undefined,
});

test("users whose requests arrive leave nodes places for theirs, and a node leaves some to others", () => {
  const places = new CallPlaces(DEFAULT_SERVER_LIMITS);
  const users = ARRIVING_CALLS / MODEST_CALLS;
  for (let at = 0; at < ARRIVING_CALLS; at++) places.expect(callOf("user", `user${at % users}`));
  assert.throws(() => places.expect(callOf("user", "one-more")), FULL);
  const node = callOf("node", "fs1");
  for (let at = 0; at < CALLS_OF_NODE; at++) places.expect(node);
  assert.throws(() => places.expect(node), FULL);
  places.expect(callOf("node", "fs2"));
  // A place is free again once its request has come, or its call has gone.
  places.begin(node);
  places.expect(node);
  places.leave(node, false);
  places.expect(node);
  assert.throws(() => places.expect(node), FULL);
});
