// Tests messages in pieces: joined they are equal, for any number of nodes, and no piece is long.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type LiveMessage, MessageAssembly, piecesOf } from "./message-pieces.ts";

const snapshotOf = (count: number, fields: object = {}): LiveMessage => ({
  type: "metrics.snapshot",
  seq: 7,
  ts: 1_790_000_000.5,
  data: {
    cluster: { nodes_total: count },
    nodes: Array.from({ length: count }, (_, id) => ({ id, ...fields })),
  },
});

/** The joined messages, each with its number of pieces. */
function throughPieces(messages: readonly LiveMessage[]): unknown[] {
  const assembly = new MessageAssembly();
  return messages.flatMap((message) =>
    piecesOf(JSON.stringify(message)).flatMap((piece) => assembly.take(structuredClone(piece)) ?? []),
  );
}

test("messages come out of their pieces as they were and in their order, without nodes, with a few, with many", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.oneof(
          fc.integer({ min: 0, max: 220 }).map((count) => snapshotOf(count)),
          fc.record({
            type: fc.constant("alert.raised"),
            seq: fc.nat(),
            ts: fc.nat(),
            data: fc.dictionary(fc.string(), fc.string()),
          }),
        ),
        { maxLength: 4 },
      ),
      (messages) => assert.deepEqual(throughPieces(messages), JSON.parse(JSON.stringify(messages))),
    ),
    { numRuns: 60 },
  );
});

test("a thousand nodes come in pieces of fifty at most, and without what each reports of its users", () => {
  const users = { per_user_storage: { "a@people.example": 1 }, per_user_quota: { "a@people.example": 2 } };
  const pieces = piecesOf(JSON.stringify(snapshotOf(1_000, users)));
  assert.equal(pieces.length, 21);
  assert.ok(pieces.every(({ nodes }) => (nodes?.length ?? 0) <= 50));
  assert.doesNotMatch(JSON.stringify(pieces), /per_user|people/);
  assert.deepEqual(throughPieces([snapshotOf(1_000, users)]), [snapshotOf(1_000)]);
});

test("a message of which the rest never came is forgotten with the next", () => {
  const assembly = new MessageAssembly();
  const [head, first] = piecesOf(JSON.stringify(snapshotOf(120)));
  for (const piece of [head, first]) assert.equal(assembly.take(piece ?? assert.fail()), undefined);
  const whole = piecesOf(JSON.stringify(snapshotOf(2))).flatMap((piece) => assembly.take(piece) ?? []);
  assert.deepEqual(whole, [snapshotOf(2)]);
});
