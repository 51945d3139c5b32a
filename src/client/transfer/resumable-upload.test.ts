// Tests of what the user is told of a large upload that was cut.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { CHUNK_BYTES } from "#base/limits.ts";
import type { Cluster, Server } from "#client/connection/cluster.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { uploadFromSource } from "./resumable-upload.ts";
import { UploadMemory } from "./upload-memory.ts";

const CHUNKS = 20;
const chunk = Buffer.alloc(CHUNK_BYTES);

/** The notes of an upload from its beginning that ends by Ctrl-C after so many chunks. */
async function notesAfter(chunks: number): Promise<string[]> {
  const notes: string[] = [];
  let sent = 0;
  const interrupted = new ClientError("CANCELLED", "interrupted");
  const whole = (_: unknown, parts: readonly Buffer[]): true => {
    if (sent >= chunks * CHUNK_BYTES) throw interrupted;
    for (const { length } of parts) sent += length;
    return true;
  };
  const server = {
    address: "n1",
    files: { beginUpload: async () => ({ uploadId: "u", offset: 0n }) },
    channel: {
      slicedUpload: async () => ({ writer: { message: () => true, whole }, cancel: () => undefined }),
    },
    progressed: () => undefined,
  } as unknown as Server;
  const cluster = {
    runAt: (_place: unknown, _policy: unknown, operation: (at: Server) => Promise<void>) => operation(server),
  } as unknown as Cluster;
  const memory = new UploadMemory(join(scratchFolder("resumable-upload-"), "uploads"));
  const sizeBytes = CHUNKS * CHUNK_BYTES;
  const state = { path: "/x", sizeBytes, mtimeMs: 1, mtimeNs: 1_000_000n, ctimeNs: 1_000_001n };
  const source = {
    label: "x",
    look: async () => state,
    async *chunks() {
      for (let at = 0; at < CHUNKS; at++) yield chunk;
    },
  };
  const deps = { cluster, memory, note: (text: string) => notes.push(text), onBytes: () => undefined };
  await assert.rejects(uploadFromSource(deps, source, { root: "", path: "/x" }), interrupted);
  return notes;
}

test("after a cut an upload tells about how much is on the server already, without what may wait in sockets", async () => {
  assert.deepEqual(await notesAfter(2), []);
  assert.deepEqual(await notesAfter(15), [
    "x: about 38.1 MiB of 76.3 MiB are on the server; the same command goes on from there within 24 hours",
  ]);
});
