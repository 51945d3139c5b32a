// Tests that a person's new address reaches what lies on the shared engine, over a kill of a process that renames.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { enginePlaces } from "#testing/engine-places.ts";
import { until } from "#testing/until.ts";
import { groveHere } from "./client-here.ts";
import { breakOff, type MixedCluster, mustBeSound, quotaOf, startMixedCluster } from "./mixed-cluster.ts";
import { Person } from "./people.ts";

const places = enginePlaces();
const { skip } = places;
/** Exit code of the client for a refusal of rights. */
const REFUSED = 4;

/** Signs an account of the identity provider in under an address; the code of the exit. */
async function come({ address }: MixedCluster, person: Person, sub: string): Promise<number | null> {
  const claims = { email: person.email, sub, iss: "idp.example.com" };
  const token = `mock-jwt.${Buffer.from(JSON.stringify(claims)).toString("base64url")}\n`;
  const env = { GROVE_CONFIG_DIR: person.folder, SVC_AUTH_MOCK: "1" };
  return (await groveHere(["login", "--metaserver", address, "--token-stdin"], { env, input: token })).code;
}

async function enter(cluster: MixedCluster, name: string, sub: string): Promise<Person> {
  const person = new Person(cluster.folder, name);
  await until(async () => (await come(cluster, person, sub)) === 0, `${name} signs in`);
  await until(async () => (await person.grove("ls")).code === 0, "ls");
  return person;
}

test("on the shared engine a new address takes over files, trash, shares, a begun upload and makers, and a newcomer finds nothing", {
  skip,
  timeout: 300_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { engine, folder } = cluster;
  await engine.e1.start();
  await engine.e2.start();
  const [alice, bob] = [await enter(cluster, "alice", "a1"), await enter(cluster, "bob", "b1")];
  const [file, large] = [join(folder, "file"), join(folder, "large")];
  await writeFile(file, "what alice wrote");
  await writeFile(large, randomBytes(60_000_000));
  await alice.ok("mkdir", "/docs");
  await alice.ok("put", file, "/docs/file");
  await alice.ok("put", file, "/gone");
  await alice.ok("rm", "/gone");
  await alice.ok("share", "/docs", bob.email);
  await bob.ok("mkdir", "/ours");
  await bob.ok("share", "/ours", alice.email);
  await alice.ok("put", file, `${bob.email}:/ours/from-alice`);
  await breakOff(alice, large, "/large");
  const before = await quotaOf(alice);

  const renamed = new Person(folder, "alice.new");
  assert.equal(await come(cluster, renamed, "a1"), 2, "it waits for an operator");
  // One process is away, and the other one is killed at whatever it does then.
  await engine.e2.end("SIGKILL");
  await cluster.operate("user", "rename", alice.email, renamed.email, "-confirm");
  for (let kill = 0; kill < 3; kill++) await engine.e1.restart();
  const waits = (): Promise<string> => cluster.operate("user", "renames");
  assert.match(await waits(), /confirmed; .*e2/);
  assert.notEqual(await come(cluster, new Person(folder, "alice"), "m9"), 0, "the old address is closed");
  await engine.e2.start();
  await until(async () => (await waits()).startsWith("Nobody waits"), "both have carried it out");

  const again = await enter(cluster, "alice.new", "a1");
  assert.equal(await again.ok("cat", "/docs/file"), "what alice wrote");
  assert.deepEqual(await quotaOf(again), before);
  assert.match(await again.ok("trash", "ls"), /gone/);
  await again.ok("trash", "restore", "/gone");
  assert.equal(await again.ok("cat", `${bob.email}:/ours/from-alice`), "what alice wrote");
  assert.match(await bob.ok("stat", "/ours/from-alice"), /alice\.new@example\.com/);
  assert.equal(await bob.ok("cat", `${again.email}:/docs/file`), "what alice wrote");
  await bob.refused(REFUSED, "cat", `${alice.email}:/docs/file`);
  await again.ok("put", large, "/large");
  const newcomer = await enter(cluster, "alice", "m9");
  assert.equal(await newcomer.ok("ls"), "");
  await newcomer.refused(REFUSED, "ls", `${bob.email}:/ours`);
  await newcomer.ok("put", file, "/newcomers");
  for (const node of Object.values(engine)) await node.restart();
  await until(async () => (await again.grove("ls", "/docs")).code === 0, "the roots after a restart");
  assert.equal(await again.ok("cat", "/docs/file"), "what alice wrote");
  assert.match(await newcomer.ok("ls"), /newcomers/);
  for (const node of Object.values(engine)) await node.end("SIGTERM");
  await mustBeSound(cluster);
});
