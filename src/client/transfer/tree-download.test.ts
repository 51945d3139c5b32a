// What is under way of small files that are fetched is bounded by bytes, and not by the number of files alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { systemClock } from "#base/clock.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { IN_FLIGHT_BYTES_FIRST } from "#client/terminal/limits.ts";
import { ProgressMeter } from "#client/terminal/progress.ts";
import { AttrSchema, Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { TransferReport } from "./transfer-report.ts";
import { TreeDownload } from "./tree-download.ts";

const FILE_BYTES = 131_072;

test("a slow link has few small files under way, whatever their number", async () => {
  let asked = 0;
  const waiting: (() => void)[] = [];
  const cluster = {
    runAt: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.push(resolve);
      asked++;
      return promise;
    },
  } as unknown as Cluster;
  const meter = new ProgressMeter(systemClock);
  const report = { fail: (_: string, error: unknown) => assert.fail(String(error)) };
  const download = new TreeDownload({
    cluster,
    meter,
    report: report as unknown as TransferReport,
    note: () => undefined,
    onTop: async () => undefined,
  });
  const attr = create(AttrSchema, { kind: Kind.FILE, size: BigInt(FILE_BYTES) });
  const names = Array.from({ length: 64 }, (_, number) => `f${number}`);
  const done = download.run(
    names.map((name) => ({ root: "", path: `/${name}`, attr, localFolder: "/tmp", localName: name })),
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(asked, IN_FLIGHT_BYTES_FIRST / FILE_BYTES);
  // Each that ends leaves room for others.
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    next();
    await new Promise((resolve) => setImmediate(resolve));
  }
  await done;
  assert.equal(meter.doneFiles, names.length);
});
