// Tests of the list of revoked certificates: what cannot be read for a moment is neither lost nor forgotten.
import assert from "node:assert/strict";
import { readFile, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { type Logger, silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { CERTIFICATE_CHECK_INTERVAL_MS } from "./file-stamp.ts";
import { openRevocations, readRevoked, revoke } from "./revocations.ts";

test("a list that cannot be read keeps what it holds when a certificate is to be added", async () => {
  const list = join(scratchFolder("revoked-"), "revoked");
  await revoke(list, "aa01", "n1");
  // A link to itself stands for any list that gives an error and could yet be replaced.
  await rename(list, `${list}.kept`);
  await symlink(list, list);
  await assert.rejects(revoke(list, "bb02", "n2"), { code: "ELOOP" });
  await rename(`${list}.kept`, list);
  await revoke(list, "bb02", "n2");
  assert.deepEqual([...(await readRevoked(list))], ["aa01", "bb02"]);
  assert.match(await readFile(list, "utf8"), /^# Serial numbers/);
});

test("certificates that are revoked at once are all on the list", async () => {
  const list = join(scratchFolder("revoked-"), "revoked");
  const serials = ["aa01", "bb02", "cc03", "dd04", "ee05"];
  await Promise.all(serials.map((serial) => revoke(list, serial, "n1")));
  assert.deepEqual([...(await readRevoked(list))].toSorted(), serials);
});

test("a list that could not be read is read again, though its file does not change any more", async (t) => {
  const list = join(scratchFolder("revoked-"), "revoked");
  await writeFile(list, "aa01\n");
  const clock = new ManualClock();
  const told: string[] = [];
  const log: Logger = { ...silentLogger, error: (event) => void told.push(event) };
  let isAway = false;
  let reads = 0;
  const read = async (path: string): Promise<ReadonlySet<string>> => {
    reads++;
    if (isAway) throw new Error("EMFILE: too many open files");
    return await readRevoked(path);
  };
  const revocations = await openRevocations(list, { clock, log, read });
  t.after(() => revocations.close());
  isAway = true;
  await writeFile(list, "aa01\nbb02\n");
  for (const wanted of [2, 3]) {
    await until(() => {
      clock.advance(CERTIFICATE_CHECK_INTERVAL_MS);
      return reads >= wanted;
    });
  }
  assert.ok(revocations.isRevoked("aa01"));
  isAway = false;
  await until(() => {
    clock.advance(CERTIFICATE_CHECK_INTERVAL_MS);
    return revocations.isRevoked("bb02");
  });
  assert.deepEqual(told, ["revocations_unreadable"]);
});
