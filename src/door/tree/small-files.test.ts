// A small file that comes in one call: its bytes are held to their version, length and checksum.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cluster } from "#client/connection/cluster.ts";
import { crc32 } from "#os/crc32.ts";
import { fetchFile, readSmall } from "./small-files.ts";

const DATA = Buffer.from("hello");
const PLACE = { root: "", path: "/f" };
const WHOLE = { etag: "e", start: 0, end: DATA.length };

/** A cluster whose one server answers so, and how often it was asked. */
function clusterOf(attr: object, data: Buffer = DATA): { readonly cluster: Cluster; asked(): number } {
  let asked = 0;
  const runAt = (): Promise<unknown> => {
    asked++;
    return Promise.resolve({ attr: { etag: "e", size: 5n, crc32: crc32(DATA), ...attr }, data });
  };
  return { cluster: { runAt } as unknown as Cluster, asked: () => asked };
}

test("bytes that are not those of the version, or were damaged, are never handed on", async () => {
  assert.deepEqual(await readSmall(clusterOf({}).cluster, PLACE, WHOLE), DATA);
  const damaged = Buffer.from("hellO");
  await assert.rejects(readSmall(clusterOf({}, damaged).cluster, PLACE, WHOLE), { code: "SERVER_BROKEN" });
  const short = DATA.subarray(1);
  await assert.rejects(readSmall(clusterOf({}, short).cluster, PLACE, WHOLE), { code: "SERVER_BROKEN" });
  await assert.rejects(readSmall(clusterOf({ etag: "f" }).cluster, PLACE, WHOLE), { code: "ETAG_MISMATCH" });
});

test("a part of a file, an empty one and one of more than 64 KiB come in another way", async () => {
  const { cluster, asked } = clusterOf({});
  for (const [start, end] of [
    [1, 5],
    [0, 0],
    [0, 65_537],
  ] as const)
    assert.equal(await readSmall(cluster, PLACE, { etag: "e", start, end }), undefined);
  assert.equal(asked(), 0);
  const larger = clusterOf({ size: 70_000n });
  assert.equal(await readSmall(larger.cluster, PLACE, { ...WHOLE, end: 65_536 }), undefined);
  assert.equal(larger.asked(), 1);
});

test("a file and its bytes are fetched in one call; of a larger one an older server's beginning is not taken", async () => {
  const small = clusterOf({});
  const fetched = await fetchFile(small.cluster, ["f"], PLACE);
  assert.deepEqual([fetched?.data, fetched?.resource.size, small.asked()], [DATA, 5, 1]);
  const larger = await fetchFile(clusterOf({ size: 70_000n }).cluster, ["f"], PLACE);
  assert.deepEqual([larger?.data, larger?.resource.size], [undefined, 70_000]);
  await assert.rejects(fetchFile(clusterOf({ size: 6n }).cluster, ["f"], PLACE), { code: "SERVER_BROKEN" });
});
