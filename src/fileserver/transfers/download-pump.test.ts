// Tests the way of a download's bytes from the disk to the socket.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCK_BYTES, CHUNK_BYTES } from "#base/limits.ts";
import { Pump } from "./download-pump.ts";
import { LARGE_MIN_BYTES, LARGE_READ_BYTES } from "./large-reads.ts";

const SIZE = 3 * CHUNK_BYTES + 400_000;
/** As much as the room grpc lets wait for a socket. */
const WAITING_BYTES = BLOCK_BYTES - 1;
const file = Buffer.alloc(SIZE, Buffer.from(Array.from({ length: 1_021 }, (_, at) => at % 251)));

/** Reads as storage does: what the buffer holds in whole blocks, up to the chunk's end. */
function source(wanted: number[], most = Number.POSITIVE_INFINITY) {
  return {
    async readBlock(offset: number, into?: () => Buffer): Promise<Buffer> {
      const room = into?.() ?? Buffer.alloc(BLOCK_BYTES);
      wanted.push(room.length);
      const within = offset % CHUNK_BYTES;
      const start = within - (within % BLOCK_BYTES);
      const end = Math.min(CHUNK_BYTES, start + Math.min(room.length, most), SIZE - (offset - within));
      await new Promise(setImmediate);
      const length = file.copy(room, 0, offset - within + start, offset - within + end);
      return room.subarray(within - start, length);
    },
  };
}

/** Takes the bytes of a piece only when further ones have filled the socket, as late as it may. */
function lateSocket() {
  const waiting: Uint8Array[] = [];
  let waitingBytes = 0;
  const sent: Buffer[] = [];
  const take = (leave: number): void => {
    while (waitingBytes > leave) {
      const piece = waiting.shift() as Uint8Array;
      waitingBytes -= piece.length;
      sent.push(Buffer.from(piece));
    }
  };
  const slice = (piece: Uint8Array): true => {
    waiting.push(piece);
    waitingBytes += piece.length;
    take(WAITING_BYTES);
    return true;
  };
  return { slice, stalledMs: 0, all: () => (take(0), Buffer.concat(sent)) };
}

async function pumped(from: number, content: ReturnType<typeof source>, hasPlace: boolean) {
  const socket = lateSocket();
  let places = 0;
  const takeLarge = (): (() => void) | undefined => {
    if (!hasPlace) return undefined;
    places++;
    return () => places--;
  };
  const pump = new Pump(content, socket, { requireLive: () => undefined, takeLarge });
  for (let at = from; at < SIZE; ) {
    const chunkEnd = Math.min(SIZE, at - (at % CHUNK_BYTES) + CHUNK_BYTES);
    await pump.send(at, chunkEnd, SIZE);
    at = chunkEnd;
  }
  const placesMeanwhile = places;
  pump.end();
  pump.end();
  return { bytes: socket.all(), placesMeanwhile, placesAfter: places };
}

for (const hasPlace of [true, false]) {
  test(`bytes arrive as they are, also when the socket is late, ${hasPlace ? "by large reads" : "block by block"}`, async () => {
    for (const from of [0, 5, CHUNK_BYTES - 10, CHUNK_BYTES, 2 * CHUNK_BYTES + 100_000]) {
      for (const most of [Number.POSITIVE_INFINITY, BLOCK_BYTES]) {
        const wanted: number[] = [];
        const { bytes, placesMeanwhile, placesAfter } = await pumped(from, source(wanted, most), hasPlace);
        assert.ok(bytes.equals(file.subarray(from)), `from ${from}`);
        const isLarge = hasPlace && SIZE - from >= CHUNK_BYTES + LARGE_MIN_BYTES + BLOCK_BYTES;
        const smallOnes = wanted.indexOf(LARGE_READ_BYTES);
        assert.equal(smallOnes >= 0, isLarge);
        // Many downloads end early: nothing large is read for those.
        if (isLarge && most > BLOCK_BYTES) assert.ok(smallOnes * BLOCK_BYTES >= CHUNK_BYTES);
        assert.deepEqual([placesMeanwhile, placesAfter], [isLarge ? 1 : 0, 0]);
      }
    }
  });
}

test("a client that takes nothing has one block read for it, and no place among the large reads", async () => {
  const wanted: number[] = [];
  const never = { slice: () => new Promise<void>(() => undefined), stalledMs: 2_000 };
  const pump = new Pump(source(wanted), never, {
    requireLive: () => undefined,
    takeLarge: () => assert.fail("no place is needed"),
  });
  void pump.send(0, CHUNK_BYTES, SIZE);
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  pump.end();
  assert.deepEqual(wanted, [BLOCK_BYTES]);
});
