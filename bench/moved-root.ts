// Measures the move of a large root between two stores: `node bench/moved-root.ts DIR INODES [FILES_MB]`.
//
// The stores are real, and rows and chunks go as they do between nodes, without the network in between. What
// is printed last is how long the root was frozen, while changes go on until the freeze.
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import type { MoveReceipt } from "#storage/contract/root-move.ts";
import type { Storage } from "#storage/contract/storage.ts";
import { openStorage } from "#storage/local/open-storage.ts";

const OWNER = "bench@example.com";
const MOVE = "01BENCH";
const NUMBER = 1_048_577;
const FILES_OF_A_FOLDER = 1_000;
const ROUND_BYTES = 1_000_000;
const LEFT_AT_FREEZE = 64;

const parent = process.argv[2] ?? "/dev/shm";
const inodes = Number(process.argv[3] ?? 100_000);
const megabytes = Number(process.argv[4] ?? 0);
const folders = [0, 1].map(() => mkdtempSync(join(parent, "grove-move-")));

function open(directory: string): Promise<Storage> {
  return openStorage({
    directory,
    clock: systemClock,
    random: systemRandom,
    logger: silentLogger,
    ballastBytes: 0,
  });
}

function report(what: string, beginMs: number): void {
  console.log(`${what.padEnd(48)} ${((performance.now() - beginMs) / 1_000).toFixed(2)} s`);
}

async function upload(storage: Storage, parentId: number, name: string, data: Buffer): Promise<void> {
  const sink = storage.beginUpload({ owner: OWNER, sizeBytes: undefined });
  sink.beginMessage();
  await sink.write(data);
  sink.endMessage();
  const by = { owner: OWNER, by: OWNER, accessVersion: undefined, ifMatch: undefined, mtimeMs: 0 };
  await sink.commit({ ...by, parentId, name, onExists: "fail" });
}

const [from, to] = await Promise.all(folders.map(open));
if (from === undefined || to === undefined) throw new Error("no stores");
try {
  let beginMs = performance.now();
  const root = await from.createRoot({ owner: OWNER, rootId: "01ROOT", number: NUMBER });
  const by = { owner: OWNER, by: OWNER, accessVersion: undefined };
  for (let made = 0; made < inodes; made += FILES_OF_A_FOLDER) {
    const { inode } = await from.createDirectory({ ...by, parentId: root.directoryId, name: `d${made}` });
    await Promise.all(
      Array.from({ length: FILES_OF_A_FOLDER - 1 }, (_, index) =>
        from.createFile({
          ...by,
          parentId: inode.id,
          name: `f${index}`,
          data: Buffer.alloc(index % 50, index),
          mtimeMs: 0,
        }),
      ),
    );
  }
  const large = randomBytes(4_000_000);
  for (let made = 0; made < megabytes; made += 40) {
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => {
        large.writeUInt32BE(made + index, 5);
        return upload(from, root.directoryId, `large${made}-${index}`, Buffer.from(large));
      }),
    );
  }
  report(`${inodes} inodes and ${megabytes} MB made`, beginMs);

  let receipts: readonly MoveReceipt[] = [];
  const pull = async (): Promise<number> => {
    const { buckets, left } = await from.moves.nextRound(MOVE, receipts, ROUND_BYTES);
    for (const chunk of await to.moves.missingChunks(MOVE, buckets)) {
      const bytes = await from.moves.readChunk(MOVE, chunk.name);
      if (bytes !== undefined) await to.moves.putChunk(MOVE, chunk, bytes);
    }
    receipts = buckets.length === 0 ? [] : await to.moves.putBuckets(MOVE, buckets);
    return left + buckets.length;
  };
  beginMs = performance.now();
  await from.moves.beginExport({ moveId: MOVE, owner: OWNER });
  await to.moves.beginImport({ moveId: MOVE, owner: OWNER, numbers: [NUMBER] });
  let rounds = 0;
  let longestMs = 0;
  for (let left = Number.POSITIVE_INFINITY; left > LEFT_AT_FREEZE; rounds++) {
    const roundMs = performance.now();
    left = await pull();
    longestMs = Math.max(longestMs, performance.now() - roundMs);
    if (rounds % 500 === 0) report(`  round ${rounds}, ${left} buckets left`, beginMs);
    await from.createFile({
      ...by,
      parentId: root.directoryId,
      name: `n${rounds}`,
      data: Buffer.alloc(30),
      mtimeMs: 0,
    });
  }
  report(`copied in ${rounds} rounds, the longest ${Math.round(longestMs)} ms`, beginMs);

  beginMs = performance.now();
  const head = await from.moves.freeze(MOVE);
  while ((await pull()) > 0);
  report("  the rest", beginMs);
  const here = await from.moves.exportTotals(MOVE);
  report("  sums at the source", beginMs);
  const there = to.moves.importTotals(MOVE);
  if (here?.checksum !== there.checksum || here.rows !== there.rows) throw new Error("the sums differ");
  report("  sums at the target", beginMs);
  await from.moves.depart(MOVE, "n2.example.com:50051");
  report("  departed", beginMs);
  await to.moves.finishImport(MOVE, head, 1);
  report(`frozen (${there.rows} rows)`, beginMs);
} finally {
  await Promise.all([from.close(), to.close()]);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
}
