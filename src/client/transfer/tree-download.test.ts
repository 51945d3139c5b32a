// What is under way of small files that are fetched is bounded by bytes, and a full disk ends it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { systemClock } from "#base/clock.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { localFailure } from "#client/terminal/client-error.ts";
import { IN_FLIGHT_BYTES_FIRST } from "#client/terminal/limits.ts";
import { ProgressMeter } from "#client/terminal/progress.ts";
import { AttrSchema, Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { TransferReport } from "./transfer-report.ts";
import { TreeDownload } from "./tree-download.ts";

const FILE_BYTES = 131_072;
const NAMES = Array.from({ length: 64 }, (_, number) => `f${number}`);

/** One download of 64 files, whose calls are answered so. */
function downloadBy(runAt: () => Promise<void>): {
  readonly meter: ProgressMeter;
  readonly done: Promise<void>;
} {
  const meter = new ProgressMeter(systemClock);
  const report = { fail: (_: string, error: unknown) => assert.fail(String(error)) };
  const download = new TreeDownload({
    cluster: { runAt } as unknown as Cluster,
    meter,
    report: report as unknown as TransferReport,
    note: () => undefined,
    onTop: async () => undefined,
  });
  const attr = create(AttrSchema, { kind: Kind.FILE, size: BigInt(FILE_BYTES) });
  const sources = NAMES.map((name) => ({
    root: "",
    path: `/${name}`,
    attr,
    localFolder: "/tmp",
    localName: name,
  }));
  return { meter, done: download.run(sources) };
}

test("a slow link has few small files under way, whatever their number", async () => {
  let asked = 0;
  const waiting: (() => void)[] = [];
  const { meter, done } = downloadBy(() => {
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    asked++;
    return promise;
  });
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked, IN_FLIGHT_BYTES_FIRST / FILE_BYTES);
  // Each that ends leaves room for others.
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    next();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  assert.equal(meter.doneFiles, NAMES.length);
});

test("a full disk of this machine ends a download, as each further file would be fetched for nothing", async () => {
  let asked = 0;
  const { done } = downloadBy(async () => {
    asked++;
    await new Promise((resolve) => setImmediate(resolve));
    throw localFailure(Object.assign(new Error("full"), { code: "ENOSPC", syscall: "write" }), "/tmp/f");
  });
  await assert.rejects(done, { code: "LOCAL_FILE", message: /no space is left/ });
  assert.ok(asked <= IN_FLIGHT_BYTES_FIRST / FILE_BYTES, `${asked} files were asked for`);
});
