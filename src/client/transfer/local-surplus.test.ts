// Tests of where a mirror puts what its source lacks, on disks of which one is mounted in the other.
import assert from "node:assert/strict";
import fs, { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { mock, test } from "node:test";
import type { ClientContext } from "#client/connection/client-context.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { TransferReport } from "./transfer-report.ts";

/** The folder where a disk is mounted: nothing is renamed out of it. */
let disk = "";
const { renameSync } = fs;
mock.method(fs, "renameSync", (from: string, to: string) => {
  if (disk !== "" && from.startsWith(`${disk}/`) !== to.startsWith(`${disk}/`)) {
    throw Object.assign(new Error("rename"), { code: "EXDEV", syscall: "rename" });
  }
  renameSync(from, to);
});
syncBuiltinESMExports();
const { putAside } = await import("./local-surplus.ts");
const { LocalFolder } = await import("./local-folder.ts");

async function mirrorWithout(above: string): Promise<{ top: string; failed: unknown[]; removedTo: string }> {
  const top = join(above, "mirror");
  mkdirSync(top);
  writeFileSync(join(top, "gone"), "gone");
  const failed: unknown[] = [];
  const report = { removed: 0, removedTo: "", fail: (_: string, error: unknown) => failed.push(error) };
  const deps = {
    context: {} as ClientContext,
    report: report as unknown as TransferReport,
    nowMs: Date.UTC(2026, 10, 23, 8, 15),
  };
  if (disk !== "") disk = top;
  await putAside(deps, [{ top, path: join(top, "gone") }], true);
  return { top, failed, removedTo: report.removedTo };
}

test("what a mirror puts aside goes beside it", async () => {
  disk = "";
  const above = scratchFolder("grove-beside-");
  const { failed, removedTo } = await mirrorWithout(above);
  assert.deepEqual(failed, []);
  assert.equal(removedTo, join(above, "mirror.removed-2026-11-23T081500"));
  assert.deepEqual(readdirSync(removedTo), ["gone"]);
  assert.deepEqual(readdirSync(join(above, "mirror")), []);
});

test("where a disk is mounted what is put aside stays on it, and is no surplus of the next time", async () => {
  disk = "mounted";
  const above = scratchFolder("grove-mounted-");
  const { top, failed, removedTo } = await mirrorWithout(above);
  assert.deepEqual(failed, []);
  assert.equal(removedTo, join(top, ".grove-removed-2026-11-23T081500"));
  assert.deepEqual(readdirSync(removedTo), ["gone"]);
  assert.deepEqual(readdirSync(above), ["mirror"]);
  assert.deepEqual(LocalFolder.top(top).others(), []);
});
