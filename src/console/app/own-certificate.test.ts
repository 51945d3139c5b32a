// Tests of the console's certificate: one of somebody else is followed on disk, and none is lost to a bad file.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock, systemClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { silentLogger } from "#base/log.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { createAuthority } from "#security/authority/authority.ts";
import { PAIR_LOOK_INTERVAL_MS } from "#security/renewal/followed-pair.ts";
import { GROVE_ENTRY } from "#testing/grove-program.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { openOwnCertificate } from "./own-certificate.ts";

test("a certificate of another authority is taken from its files without a signal, and counted to its end (B-11)", async (t) => {
  const folder = scratchFolder("own-certificate-");
  const clock = new ManualClock(Date.now());
  const foreign = await createAuthority(join(folder, "foreign"), { clock });
  const cluster = await createAuthority(join(folder, "cluster"), { clock });
  const paths = { cert: join(folder, "c.crt"), key: join(folder, "c.key") };
  const write = async (): Promise<void> => {
    const { certificatePem, keyPem } = await foreign.issueNodeCertificate({ id: "console" });
    await writeFile(paths.cert, certificatePem);
    // Between the two writes the files do not match.
    clock.advance(PAIR_LOOK_INTERVAL_MS);
    await writeFile(paths.key, keyPem);
  };
  await write();
  const flags = { ...paths, ca: cluster.certificatePath, metaservers: ["127.0.0.1:1"] };
  const lines: string[] = [];
  const keep = (event: string): number => lines.push(event);
  const log = { ...silentLogger, warn: keep, error: keep };
  const own = await openOwnCertificate(flags, { clock, log, random: () => 0 });
  t.after(() => own.close());
  assert.equal(own.daysLeft(), 89);
  const seen: string[] = [];
  own.onChange(({ cert }) => seen.push(cert));
  clock.jumpWall(80 * DAY_MS);
  assert.equal(own.daysLeft(), 9);
  for (let look = 0; look < 2; look++) await own.reload();
  assert.deepEqual(lines, ["certificate_ends"], "one line a day");
  await write();
  clock.advance(PAIR_LOOK_INTERVAL_MS);
  await until(() => seen.length > 0);
  assert.equal(own.current.cert, seen[0]);
  assert.equal(own.daysLeft(), 89);
});

test("a console whose certificate cannot be used says so and ends, although it has a store", async () => {
  const folder = scratchFolder("own-certificate-");
  const store = `sqlite:${join(folder, "metadata.db")}`;
  await (await openDirectory(store, { clock: systemClock })).close();
  const words = [GROVE_ENTRY, "admin", "-data", join(folder, "admin"), "-meta", store, "-tls_cert", "c.crt"];
  const { status, stderr } = spawnSync(process.execPath, words, { timeout: 60_000, encoding: "utf8" });
  assert.match(stderr, /HTTPS needs both -tls_cert and -tls_key/);
  assert.equal(status, 1);
});
