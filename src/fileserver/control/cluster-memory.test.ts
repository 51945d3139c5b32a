// A data folder's cluster id is kept, never replaced, and survives a crash without leftovers (D19, A-10).
import assert from "node:assert/strict";
import { cp, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { openClusterMemory } from "./cluster-memory.ts";

test("the cluster's id is remembered, and what a crash left of writing it is swept", async () => {
  const folder = scratchFolder("cluster-memory-");
  const first = await openClusterMemory(folder);
  assert.equal(first.clusterId, "");
  await first.remember("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  await writeFile(join(folder, ".cluster_id.0123456789abcdef.tmp"), "half");
  await writeFile(join(folder, ".other.0123456789abcdef.tmp"), "somebody else's");
  const second = await openClusterMemory(folder);
  assert.equal(second.clusterId, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
  assert.deepEqual((await readdir(folder)).sort(), [".other.0123456789abcdef.tmp", "cluster_id"]);
  await assert.rejects(second.remember("../x"), (error) => isGroveError(error, "BAD_ARGUMENT"));
  await writeFile(join(folder, "cluster_id"), "two words\n");
  await assert.rejects(openClusterMemory(folder), (error) => isGroveError(error, "CORRUPT"));
  await rm(join(folder, "cluster_id"));
  const refused = await openClusterMemory(folder, (clusterId) => Promise.reject(new Error(clusterId)));
  await assert.rejects(refused.remember("01ARZ3NDEKTSV4RRFFQ69G5FAV"), /01ARZ3NDEKTSV4RRFFQ69G5FAV/);
  assert.equal((await openClusterMemory(folder)).clusterId, "");
});

test("the process that registered last is remembered beside it, and what is no process is none", async () => {
  const folder = scratchFolder("cluster-memory-");
  const first = await openClusterMemory(folder);
  assert.equal(first.lastProcess, "");
  await first.registered("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  await first.registered("01ARZ3NDEKTSV4RRFFQ69G5FAV");
  assert.equal(first.lastProcess, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
  assert.equal((await openClusterMemory(folder)).lastProcess, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
  const copy = join(scratchFolder("cluster-memory-"), "copy");
  await cp(folder, copy, { recursive: true });
  assert.equal((await openClusterMemory(copy)).lastProcess, "");
  for (const text of ["", "two words", "\u0000", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]) {
    await writeFile(join(folder, "last_process"), text);
    assert.equal((await openClusterMemory(folder)).lastProcess, "");
  }
});
