// Tests of a certificate for people's programs: files that nobody could connect with change nothing.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { DAY_MS } from "#base/duration.ts";
import { silentLogger } from "#base/log.ts";
import { createAuthority, type IssuedCertificate } from "#security/authority/authority.ts";
import { NODE_CERTIFICATE_LIFETIME_MS } from "#security/authority/issued-certificates.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { FollowedPair } from "./followed-pair.ts";

test("a pair that has ended, is for later, for clients alone or cut off is not taken for one in use", async (t) => {
  const folder = scratchFolder("pair-");
  const clock = new ManualClock();
  const authority = await createAuthority(join(folder, "ca"), { clock });
  const paths = { cert: join(folder, "p.crt"), key: join(folder, "p.key") };
  const put = async ({ certificatePem, keyPem }: IssuedCertificate, more = ""): Promise<void> => {
    await writeFile(paths.key, keyPem);
    await writeFile(paths.cert, `${certificatePem}${more}`);
  };
  const issuedAt = async (atMs: number): Promise<IssuedCertificate> => {
    clock.jumpWall(atMs);
    const issued = await authority.issueNodeCertificate({ id: "p" });
    clock.jumpWall(-atMs);
    return issued;
  };
  const ofClient = await authority.issueDoorCertificate("d1");
  await put(ofClient);
  const told: string[] = [];
  const log = { ...silentLogger, warn: (event: string) => void told.push(event) };
  await assert.rejects(
    FollowedPair.open(paths, { clock, log }),
    /is not for servers: .*TLS server authentication/,
  );
  await put(await issuedAt(0));
  const pair = await FollowedPair.open(paths, { clock, log });
  t.after(() => pair.close());
  const first = pair.current;
  for (const [why, issued, more] of [
    ["ended", await issuedAt(-NODE_CERTIFICATE_LIFETIME_MS - 1_000)],
    ["later", await issuedAt(DAY_MS)],
    ["for clients", ofClient],
    ["cut off", await issuedAt(0), authority.certificatePem.slice(0, 99)],
  ] as const) {
    await put(issued, more);
    await pair.reload();
    await pair.reload();
    assert.equal(pair.current, first, why);
    assert.deepEqual(told.splice(0), ["public_certificate_kept"], why);
  }
  const next = await issuedAt(0);
  await put(next);
  await pair.reload();
  assert.equal(pair.current.cert, next.certificatePem);
});
