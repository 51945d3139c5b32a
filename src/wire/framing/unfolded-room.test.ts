// Compressed messages: unfolded off the event loop, never beyond what they declare, and counted while they are used.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { Decompressor } from "./gzip.ts";
import { DEFAULT_SERVER_LIMITS } from "./limits.ts";
import { PartyBytes, SharedBudget } from "./shared-budget.ts";
import { Code } from "./status.ts";
import { UnfoldedRoom } from "./unfolded-room.ts";

const MIB = 1_048_576;
const MOST = DEFAULT_SERVER_LIMITS.receiveMessageBytes;

test("a few bytes that become megabytes are unfolded on another thread, small messages at once", async () => {
  const unfolder = new Decompressor(DEFAULT_SERVER_LIMITS);
  const small = gzipSync(Buffer.alloc(65_536));
  assert.equal(unfolder.unfold(small, MOST) instanceof Promise, false);
  const wide = gzipSync(Buffer.alloc(3 * MIB));
  assert(wide.length < 4_096);
  const unfolded = unfolder.unfold(wide, MOST);
  assert(unfolded instanceof Promise);
  assert.equal((await unfolded).length, 3 * MIB);
});

test("a message unfolds to no more than it declares", () => {
  const unfolder = new Decompressor(DEFAULT_SERVER_LIMITS);
  const lying = gzipSync(Buffer.alloc(3 * MIB));
  lying.writeUInt32LE(1_000, lying.length - 4);
  assert.equal(unfolder.unfoldedBytes(lying, MOST), 1_000);
  assert.throws(() => unfolder.unfold(lying, MOST), { code: Code.RESOURCE_EXHAUSTED });
  assert.throws(() => unfolder.unfoldedBytes(gzipSync(Buffer.alloc(1_001)), 1_000), {
    code: Code.RESOURCE_EXHAUSTED,
  });
});

test("a call's message has room until the next one or the call's end, and others wait for it", async () => {
  const budget = new SharedBudget({ total: 4 * MIB, perParty: 4 * MIB, spare: 0, modest: 4 * MIB });
  const roomOf = (party: string): UnfoldedRoom => new UnfoldedRoom(new PartyBytes(budget, party));
  const [first, second, third] = [roomOf("ada"), roomOf("ada"), roomOf("bob")];
  assert.equal(first.take(3 * MIB), true);
  assert.equal(first.take(4 * MIB), true);
  assert.equal(second.take(1_000), true);
  const waiting = second.take(2 * MIB);
  const givenUp = third.take(2 * MIB);
  assert(waiting instanceof Promise && givenUp instanceof Promise);
  third.release();
  await assert.rejects(givenUp, { code: Code.CANCELLED });
  first.release();
  await waiting;
  assert.equal(budget.used, 2 * MIB);
  second.release();
  second.release();
  assert.equal(budget.used, 0);
});
