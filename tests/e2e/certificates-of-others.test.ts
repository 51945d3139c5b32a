// Tests that the certificates of the console and of a door are renewed by themselves, as those of nodes are.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "node:tls";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { groveOk, startCertificateCluster } from "./certificate-cluster.ts";
import { freePlace, startGrove, stopProgram } from "./processes.ts";

/** About 45 seconds: the renewal comes after some 28. */
const FIRST_DAYS = 0.0005;

const endAt = (port: number, ca: string): Promise<number> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, ca, servername: "localhost" }, () => {
      resolve(socket.getPeerX509Certificate()?.validToDate.getTime() ?? 0);
      socket.destroy();
    });
    socket.on("error", reject);
  });

test("the console and a door have their certificates renewed by the MetaServer, without a restart (B-11)", {
  timeout: 180_000,
}, async (t) => {
  const cluster = await startCertificateCluster(t, scratchFolder("grove-e2e-"), 90);
  const { folder, caDir, caPem, metaserver } = cluster;
  const issue = async (id: string, ...words: string[]): Promise<string> => {
    const out = join(folder, id);
    await groveOk(["ca", "issue", id, "-ca_dir", caDir, "-days", String(FIRST_DAYS), "-out", out, ...words]);
    return join(out, id);
  };
  const [console, door] = [await freePlace(), await freePlace()];
  const [own, ofDoor] = await Promise.all([issue("console", "-host", "localhost"), issue("d1", "-door")]);
  const tls = (stem: string): string[] => ["-tls_cert", `${stem}.crt`, "-tls_key", `${stem}.key`];
  const common = ["-tls_ca", join(caDir, "ca.crt"), "-metaserver", `localhost:${metaserver.port}`];
  const first = new X509Certificate(await readFile(`${own}.crt`)).validToDate.getTime();
  const consoleWords = [
    "-data",
    join(folder, "admin"),
    "-meta",
    `sqlite:${join(folder, "meta", "metadata.db")}`,
  ];
  const doorWords = ["-metrics", "off", "-trusted_proxy", "127.0.0.1"];
  const programs = [
    startGrove(["admin", "-listen", console.address, ...consoleWords, ...common, ...tls(own)]),
    startGrove(["door", "-listen", door.address, ...doorWords, ...common, ...tls(ofDoor)]),
  ];
  for (const program of programs) t.after(() => stopProgram(program, "SIGKILL"));
  await Promise.all(programs.map((program) => program.says(/"event":"serving"/)));
  await Promise.all(programs.map((program) => program.says(/"why":"renewed"/)));
  for (const stem of [own, ofDoor]) {
    const kept = new X509Certificate(await readFile(`${stem}.crt`));
    assert.ok(kept.validToDate.getTime() > first, stem);
  }
  // Browsers are shown the new one.
  await until(async () => (await endAt(console.port, caPem)) > first);
});
