// A stream of a resumable upload ends for the next one, also where it was not waiting when that came (D15).
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { UploadLease } from "#fileserver/transfers/upload-lease.ts";
import { RowsToCome } from "#storage/contract/rows-to-come.ts";
import type { Caller } from "./caller.ts";
import { receiveUpload, type UploadDeps } from "./upload.ts";

const OWNER = "ada@example.com";
const NEVER = new Promise<never>(() => {});
const STORED = { uploadId: "u", owner: OWNER, path: "/f", sizeBytes: 10, stagedBytes: 0, mtimeMs: 0 };
const HEADER = { part: { case: "header", value: { uploadId: "u", resumeOffset: 0n, sizeKnown: false } } };
const CHUNK = { part: { case: "chunk", value: { offset: 0n } } };

interface Scene {
  /** What the disk makes of a slice. */
  readonly write?: () => Promise<void>;
  /** Called where the place of the upload is looked up. */
  readonly reach?: () => void;
  /** Messages after the header; then its client is silent. */
  readonly messages: readonly object[];
}

/** Runs one stream with stand-ins for what it asks, and says what became of it. */
function start({ write, reach, messages }: Scene): {
  readonly leases: UploadLease;
  readonly ended: Promise<unknown>;
  readonly suspended: () => number;
} {
  const leases = new UploadLease();
  let suspended = 0;
  const directory = { id: 1, kind: "directory" };
  const sink = {
    beginMessage: () => undefined,
    write,
    suspend: async () => {
      suspended++;
    },
  };
  const holding = { claimInodes: () => undefined, reserve: () => undefined, checkChunk: () => undefined };
  const deps = {
    storage: { uploads: { open: () => sink }, links: {} },
    access: {
      reach: () => {
        reach?.();
        const resolution = { root: { owner: OWNER, usage: {} }, chain: [directory], missing: ["f"] };
        return { owner: OWNER, names: ["f"], last: directory, isOwner: true, resolution };
      },
      stillAllowed: () => true,
    },
    locks: { require: () => undefined },
    ledger: { open: () => ({ ...holding, release: () => undefined }) },
    meter: { later: (_: string, run: () => unknown) => run() },
    slots: { run: (_: string, run: () => unknown) => run() },
    abandoned: {
      first: (_: unknown, first: unknown) => Promise.resolve(first),
      watch: (_: unknown, __: unknown, run: () => unknown) => run(),
    },
    resumable: { own: () => STORED },
    turns: leases,
  } as unknown as UploadDeps;
  const caller = { identity: { username: OWNER }, renew: () => undefined, isLive: () => true };
  const queue = [{ message: HEADER }, ...messages];
  const source = { next: () => queue.shift() ?? NEVER };
  const call = receiveUpload(
    deps,
    caller as unknown as Caller,
    source as unknown as Parameters<typeof receiveUpload>[2],
    { link: undefined, signal: new AbortController().signal },
  );
  const ended = call.then(
    () => "made",
    (error: unknown) => (error instanceof GroveError ? error.code : error),
  );
  return { leases, ended, suspended: () => suspended };
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** The next stream, which has the upload once the one before has ended. */
async function takesOver(
  { leases, ended, suspended }: ReturnType<typeof start>,
  then: () => void,
): Promise<void> {
  let isTaken = false;
  const next = leases.take(
    "u",
    () => undefined,
    async () => {
      isTaken = true;
    },
  );
  await turns();
  then();
  await turns();
  assert.equal(isTaken, true, "the stream before holds the upload although its client is silent");
  await next;
  assert.equal(await ended, "UPLOAD_TAKEN_OVER");
  assert.equal(suspended(), 1);
}

test("a stream that is taken over while it writes does not wait for its silent client afterwards", async () => {
  const disk = Promise.withResolvers<void>();
  const slices = [Buffer.alloc(5)];
  const payload = { read: () => slices.shift() ?? NEVER };
  const stream = start({
    write: () => disk.promise,
    messages: [{ message: CHUNK, payloadBytes: 10, payload }],
  });
  await turns();
  await takesOver(stream, () => disk.resolve());
});

test("a stream that is taken over while it begins ends before it waits for its client", async () => {
  const rows = Promise.withResolvers<void>();
  let isHere = false;
  const stream = start({
    reach: () => {
      if (!isHere) throw new RowsToCome(rows.promise);
    },
    messages: [],
  });
  await turns();
  await takesOver(stream, () => {
    isHere = true;
    rows.resolve();
  });
});
