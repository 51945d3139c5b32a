// Tests of two processes with one node id (M-02, D19): a copy, another key, the end of a pause.
import assert from "node:assert/strict";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { groveOk, startCertificateCluster } from "./certificate-cluster.ts";
import { freePlace, type Place, type Program, startGrove, stopProgram } from "./processes.ts";

const ready = async (place: Place): Promise<{ ready: boolean; reasons: string[] }> =>
  (await (await fetch(`${place.metricsUrl}/ready`)).json()) as { ready: boolean; reasons: string[] };

test("a copy of a node fences it at once, a stranger with its name waits for the lease, and the fenced one never comes back", {
  timeout: 180_000,
}, async (t) => {
  const folder = scratchFolder("grove-e2e-");
  const cluster = await startCertificateCluster(t, folder, 90);
  const first = await cluster.addNode("n1");
  const start = async (data: string, ...flags: string[]): Promise<Place & Program> => {
    const place = await freePlace();
    const words = ["fileserver", "-data", data, "-listen", place.address, "-advertise", place.address];
    const program = startGrove([...words, "-reserve", "1MiB", "-mock", ...flags]);
    t.after(() => stopProgram(program, "SIGKILL"));
    await program.says(/: serves .* on /);
    return { ...program, ...place };
  };
  assert.deepEqual(await ready(first), { ready: true, reasons: [] });

  // Another key with a certificate for the same id.
  await groveOk(["ca", "issue", "n1", "-ca_dir", cluster.caDir, "-out", join(folder, "other")]);
  const stranger = await start(
    join(folder, "stranger"),
    "-id",
    "n1",
    "-metaserver",
    `localhost:${cluster.metaserver.port}`,
    "-tls_cert",
    join(folder, "other", "n1.crt"),
    "-tls_key",
    join(folder, "other", "n1.key"),
    "-tls_ca",
    join(folder, "other", "ca.crt"),
  );
  await stranger.says(/NODE_ID_HELD/);
  assert.match((await ready(stranger)).reasons.join(), /another FileServer is running as n1/);
  assert.equal((await ready(first)).ready, true);

  // The holder pauses beyond its lease: the stranger takes over, and the holder is fenced when it wakes up.
  first.child.kill("SIGSTOP");
  await stranger.says(/"event":"registered"/, NODE_LEASE_MS + 40_000);
  assert.equal((await ready(stranger)).ready, true);
  first.child.kill("SIGCONT");
  await first.says(/"event":"fenced"/);
  assert.match((await ready(first)).reasons.join(), /another process registered/);
  const registrations = (program: Program): number =>
    program.output().split('"event":"registered"').length - 1;
  assert.equal(registrations(first), 1);
  assert.equal((await ready(stranger)).ready, true);

  // A copy of the stranger, with the same key: taken for a restart, so the one before is fenced.
  await mkdir(join(folder, "copy"));
  await cp(join(folder, "other"), join(folder, "copy", "tls"), { recursive: true });
  const tls = join(folder, "copy", "tls");
  const copy = await start(
    join(folder, "copy", "data"),
    "-id",
    "n1",
    "-metaserver",
    `localhost:${cluster.metaserver.port}`,
    "-tls_cert",
    join(tls, "n1.crt"),
    "-tls_key",
    join(tls, "n1.key"),
    "-tls_ca",
    join(tls, "ca.crt"),
  );
  await copy.says(/"epoch":3/);
  await stranger.says(/"event":"fenced"/);
  await until(async () => ((await ready(stranger)).ready ? undefined : true));
  assert.equal((await ready(copy)).ready, true);
  assert.equal(registrations(stranger), 1);
});
