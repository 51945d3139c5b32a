// Archives of folders that would be too much for a door.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { sendArchive } from "./archive.ts";
import type { PageCall } from "./call.ts";

/** A call for a folder below deep ones, which has so many files with long names. */
function callFor(files: number): { readonly call: PageCall; readonly sent: Record<string, unknown> } {
  const names = Array.from({ length: files }, (_, at) => String(at).padStart(150, "x"));
  const row = { kind: Kind.FILE, size: 0n, crc32: 0, mtimeMs: 0n, etag: "e" };
  const answers: unknown[] = [
    { kind: Kind.DIRECTORY },
    { nextPageToken: "", entries: () => names.map((name) => ({ ...row, name })) },
  ];
  const sent: Record<string, unknown> = {};
  const exchange = {
    method: "HEAD",
    query: new URLSearchParams({ path: `/${"deep/".repeat(700)}end` }),
    destroyed: false,
    setHeader: (name: string, value: unknown) => {
      sent[name] = value;
    },
    end: () => undefined,
  };
  const person = { cluster: { runAt: async () => answers.shift() } };
  return { call: { exchange, person } as unknown as PageCall, sent };
}

test("an archive's names are bounded by their length too, and not by their number alone", async () => {
  const { call, sent } = callFor(4_000);
  await sendArchive(call);
  assert.equal(sent["content-type"], "application/zip");
  await assert.rejects(sendArchive(callFor(5_000).call), { status: 409, message: /fewer with long names/u });
});
