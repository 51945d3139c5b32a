// Tests of a restored disk: users newer than the backup get no silent empty root, no false alarm (D19, D24).
import assert from "node:assert/strict";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { groveOk } from "./certificate-cluster.ts";
import { Person } from "./people.ts";
import { freePlace, type Place, type Program, startGrove, stopProgram } from "./processes.ts";

test("a user whose root a restore has lost is told so at sign-in, and gets an empty one once the operator has said it", {
  timeout: 240_000,
}, async (t) => {
  const folder = scratchFolder("grove-e2e-");
  const [meta, node] = [await freePlace(), await freePlace()];
  const metaData = join(folder, "meta");
  const metaserver = startGrove(["metaserver", "-mock", "-data", metaData, "-listen", meta.address]);
  t.after(() => stopProgram(metaserver, "SIGKILL"));
  await metaserver.says(/"event":"serving"/);
  const serve = async (data: string, place: Place): Promise<Program> => {
    const words = ["fileserver", "-mock", "-data", data, "-id", "n1", "-listen", place.address];
    const program = startGrove([...words, "-metaserver", meta.address, "-reserve", "1MiB"], {
      env: { SVC_AUTH_MOCK: "1" },
    });
    t.after(() => stopProgram(program, "SIGKILL"));
    // The new folder after the loss waits for the lease of the one before.
    await program.says(/"event":"registered"/, 90_000);
    return program;
  };
  const [alice, dave] = ["alice", "dave"].map((name) => new Person(folder, name));
  assert.ok(alice !== undefined && dave !== undefined);
  const signIn = ["login", "--metaserver", meta.address, "--mock"];
  const first = await serve(join(folder, "n1"), node);
  await alice.ok(...signIn, alice.email);
  await alice.ok("mkdir", "/before");
  const backups = join(folder, "backups");
  await groveOk(["backup", "create", "-data", join(folder, "n1"), "-to", backups]);
  await dave.ok(...signIn, dave.email);
  await dave.ok("mkdir", "/precious");
  await stopProgram(first);
  await rm(join(folder, "n1"), { recursive: true });
  const restored = join(folder, "restored");
  await groveOk(["backup", "restore", backups, "-to", restored]);
  const line = await groveOk(["audit", "verify", "-data", restored]);
  assert.match(line, /^OK: /m);
  await serve(restored, node);

  await alice.ok(...signIn, alice.email);
  assert.match(await alice.ok("ls", "/"), /before/);
  const said = await dave.refused(4, ...signIn, dave.email);
  assert.match(
    said,
    /This server was restored from its backup of \d{4}-\d\d-\d\d \d\d:\d\d UTC, and your files are not in it/,
  );
  assert.match(said, /Ask the administrator of the cluster/);
  const store = ["-meta", `sqlite:${join(metaData, "metadata.db")}`];
  const given = await groveOk(["node", "lost-root", dave.email, ...store]);
  assert.match(given, /^dave@example\.com gets a new, empty root on n1 at the next sign-in/);
  await dave.ok(...signIn, dave.email);
  assert.doesNotMatch(await dave.ok("ls", "/"), /precious/);
  await dave.ok("mkdir", "/new");
  const audit = join(restored, "audit");
  await until(async () => {
    const logs = (await readdir(audit)).filter((name) => name.endsWith(".log"));
    const texts = await Promise.all(logs.map((name) => readFile(join(audit, name), "utf8")));
    return texts.some((text) => text.includes('"act":"root.replaced","subject":"dave@example.com"'));
  }, "the audit line about dave's new root");
  const unknown = await dave.refused(1, "node", "lost-root", "nobody@example.com", ...store);
  assert.match(unknown, /nobody@example\.com has no root that a node held/);
});
