// Tests both halves of a download whose connection another thread serves, over real files.
import assert from "node:assert/strict";
import { closeSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { BLOCK_BYTES, CHUNK_BYTES } from "#base/limits.ts";
import type { Caller } from "#fileserver/operations/caller.ts";
import { DistantPump } from "#fileserver/operations/distant-pump.ts";
import { StallWatch } from "#fileserver/transfers/download-pump.ts";
import type { DownloadOrder, DownloadReport } from "#fileserver/transfers/transfer-messages.ts";
import { crc32 } from "#os/crc32.ts";
import type { ChunkFault, FileContent, LentChunk } from "#storage/contract/file-content.ts";
import { patterned } from "#storage/local/store.fixture.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import type { CallLink } from "#wire/grpc/call-context.ts";
import type { SlicedWriter } from "#wire/grpc/sliced.ts";
import type { GuestCall } from "#wire/loops/guest-call.ts";
import type { DownloadResponseSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { LoopDownload } from "./loop-download.ts";

const SIZE = 3 * CHUNK_BYTES + 400_000;
const FILE: Buffer = patterned(SIZE, 3);

type Outlet = (bytes: Uint8Array) => true | Promise<void>;

/** A download of the file, whose chunk files lie in a folder; `damaged` is the position of one that is not whole. */
function download(context: TestContext, outlet: Outlet, damaged?: number) {
  const folder = temporaryDirectory(context);
  const open = new Set<number>();
  const faults: { readonly position: number; readonly fault: ChunkFault }[] = [];
  const content = {
    isSmall: false,
    async lend(offset: number, use: (chunk: LentChunk) => Promise<ChunkFault | undefined>): Promise<void> {
      const position = Math.floor(offset / CHUNK_BYTES);
      const startBytes = position * CHUNK_BYTES;
      const bytes = FILE.subarray(startBytes, startBytes + CHUNK_BYTES);
      const blockCrcs = new Uint8Array(Math.ceil(bytes.length / BLOCK_BYTES) * 4);
      for (let at = 0; at < bytes.length; at += BLOCK_BYTES) {
        const crc = crc32(bytes.subarray(at, at + BLOCK_BYTES));
        new DataView(blockCrcs.buffer).setUint32((at / BLOCK_BYTES) * 4, crc, true);
      }
      const path = join(folder, String(position));
      const stored = Buffer.from(bytes);
      if (position === damaged) stored[100] = (stored[100] ?? 0) ^ 1;
      writeFileSync(path, stored);
      const descriptor = openSync(path, "r");
      open.add(position);
      const fault = await use({
        startBytes,
        length: bytes.length,
        storedLength: bytes.length,
        blockCrcs,
        descriptor,
      });
      closeSync(descriptor);
      open.delete(position);
      if (fault === undefined) return;
      faults.push({ position, fault });
      throw new Error(fault.problem);
    },
  } as unknown as FileContent;

  const orders: DownloadOrder[] = [];
  const reports: DownloadReport[] = [];
  let places = 0;
  let sentElsewhere = 0;
  const link: CallLink = {
    tell: (order) => {
      orders.push(structuredClone(order) as DownloadOrder);
      setImmediate(() => call.onTold?.(structuredClone(order)));
    },
    flow: () => undefined,
    onTold: undefined,
    onLost: undefined,
  };
  const call = {
    tell: (report: DownloadReport) => {
      reports.push(report);
      setImmediate(() => link.onTold?.(structuredClone(report)));
    },
    whenWritten: () => undefined,
  } as unknown as GuestCall;
  const cancellation = new AbortController();
  const session = { isLive: true };
  const caller = {
    isLive: () => session.isLive,
    renew: () => {
      if (!session.isLive) throw new Error("the session has ended");
    },
  } as unknown as Caller;
  const stalls = new StallWatch({ every: () => () => undefined } as never);
  void new LoopDownload(call, { framed: outlet, stalledMs: 0 } as never, stalls);
  const pump = new DistantPump({
    link,
    signal: cancellation.signal,
    content,
    writer: {
      sentElsewhere: (bytes: number) => {
        sentElsewhere += bytes;
      },
    } as unknown as SlicedWriter<typeof DownloadResponseSchema>,
    caller,
    abandoned: { watch: (_caller, _pump, run) => run() },
    takeLarge: () => {
      places++;
      return () => places--;
    },
  });
  return {
    pump,
    orders,
    reports,
    faults,
    open,
    session,
    cancellation,
    counts: () => ({ places, sentElsewhere }),
    async sendAll(from = 0): Promise<void> {
      for (let at = from; at < SIZE; ) {
        const chunkEnd = Math.min(SIZE, at - (at % CHUNK_BYTES) + CHUNK_BYTES);
        await pump.send(at, chunkEnd, SIZE);
        at = chunkEnd;
      }
    },
  };
}

for (const from of [0, 5, CHUNK_BYTES - 10, 2 * CHUNK_BYTES + 300_000]) {
  test(`every byte from ${from} on arrives once and in order, and every file is given back`, async (context) => {
    const taken: Buffer[] = [];
    const { sendAll, pump, open, counts } = download(context, (bytes) => {
      taken.push(Buffer.from(bytes));
      return true;
    });
    await sendAll(from);
    await pump.end();
    assert.ok(Buffer.concat(taken).equals(FILE.subarray(from)));
    assert.deepEqual([...open], []);
    assert.deepEqual(counts(), { places: 0, sentElsewhere: SIZE - from });
  });
}

test("the chunk after the one that is sent is lent before it, and large reads begin with the second", async (context) => {
  const { sendAll, pump, orders } = download(context, () => true);
  await sendAll();
  await pump.end();
  const said = orders.map((order) =>
    order.op === "lend"
      ? `lend ${order.chunk.startBytes / CHUNK_BYTES}`
      : order.op === "send"
        ? `send ${order.from / CHUNK_BYTES}${order.isLarge ? " large" : ""}`
        : order.op,
  );
  assert.deepEqual(said, [
    "lend 0",
    "send 0",
    "lend 1",
    "send 1 large",
    "lend 2",
    "send 2 large",
    "lend 3",
    "send 3 large",
  ]);
});

test("a damaged chunk ends the download where it begins, and no byte of its damaged block is sent", async (context) => {
  let bytes = 0;
  const { sendAll, pump, faults, open } = download(
    context,
    (piece) => {
      bytes += piece.length;
      return true;
    },
    1,
  );
  await assert.rejects(sendAll(), /a block does not match its checksum/);
  await pump.end();
  assert.equal(bytes, CHUNK_BYTES);
  assert.deepEqual(
    faults.map(({ position }) => position),
    [1],
  );
  assert.deepEqual([...open], []);
});

test("when the session ends in the middle, both lent files come back though the client takes nothing", async (context) => {
  const { pump, open, session, reports } = download(context, () => new Promise(() => undefined));
  const sending = pump.send(0, CHUNK_BYTES, SIZE);
  while (open.size < 2) await new Promise(setImmediate);
  session.isLive = false;
  pump.giveUpIfOver();
  await assert.rejects(sending, /the session has ended/);
  await pump.end();
  assert.deepEqual([...open], []);
  assert.deepEqual(
    reports.map(({ isSent }) => isSent),
    [false, false],
  );
});

test("a client that goes away in the middle leaves no file in use, and no place taken", async (context) => {
  let bytes = 0;
  const { sendAll, pump, open, counts, cancellation } = download(context, (piece) => {
    bytes += piece.length;
    if (bytes < 1.5 * CHUNK_BYTES) return true;
    cancellation.abort(new Error("the client has gone"));
    return Promise.reject(new Error("the stream is closed"));
  });
  await assert.rejects(sendAll(), /the client has gone/);
  assert.deepEqual(open.size, 1);
  await pump.end();
  assert.deepEqual([...open], []);
  assert.equal(counts().places, 0);
});
