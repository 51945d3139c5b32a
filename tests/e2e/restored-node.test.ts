// Tests that a node started with a lesser role is refused, with the commands to type (D19).
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { groveOk, startCertificateCluster } from "./certificate-cluster.ts";
import { freePlace, grove, type Place, type Program, startGrove, stopProgram } from "./processes.ts";

const MOCK = { env: { SVC_AUTH_MOCK: "1" } };
const TIMEOUT = { timeout: 180_000 };

test(
  "a restored node does not come up as a server of its own by its usual command, and comes back by the commands that it is told",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("grove-e2e-");
    const cluster = await startCertificateCluster(t, folder, 90);
    const first = await cluster.addNode("n1");
    await first.says(/"event":"registered"/);
    await stopProgram(first);
    const backups = join(folder, "backups");
    await groveOk(["backup", "create", "-data", first.data, "-to", backups]);
    const restored = join(folder, "restored");
    const told = await groveOk(["backup", "restore", backups, "-to", restored]);
    await rm(first.data, { recursive: true });
    assert.ok(
      existsSync(join(restored, "tls", "node.crt")) && !existsSync(join(restored, "tls", "node.key")),
    );
    const address = `localhost:${cluster.metaserver.port}`;
    const joining = `grove node join -metaserver ${address} -data ${restored} -id n1 -advertise ${first.address} -token_file n1.token`;
    for (const line of [
      `It was n1 of the cluster at ${address}, with TLS. Only when that one is gone for good:`,
      `  grove fsck -data ${restored} -deep`,
      "  grove node token -ca_dir FOLDER -id n1 > n1.token    (on the MetaServer's host)",
      `  ${joining}`,
      `  grove fileserver -data ${restored}`,
    ]) {
      assert.ok(told.split("\n").includes(line), `${line}\nis not in\n${told}`);
    }

    const refused = await grove(["fileserver", "-data", restored, "-listen", first.address, "-mock"], MOCK);
    assert.notEqual(refused.code, 0);
    assert.equal(refused.stdout, "");
    assert.match(refused.stderr, /was n1 of the cluster at .*, with TLS, and its private key is not there/);
    assert.ok(refused.stderr.includes(`'${joining}'`), refused.stderr);
    const looked = await grove(["doctor", "-data", restored, "-listen", first.address], MOCK);
    assert.equal(looked.code, 1);
    assert.match(looked.stdout, /role of .*was n1 of the cluster at .*its private key is not there/);

    const tokenFile = join(folder, "again.token");
    await writeFile(tokenFile, await groveOk(["node", "token", "-ca_dir", cluster.caDir, "-id", "n1"]), {
      mode: 0o600,
    });
    const words = joining.split(" ").slice(1, -1);
    await groveOk([...words, tokenFile]);
    const again = startGrove(
      ["fileserver", "-data", restored, "-listen", first.address, "-reserve", "1MiB", "-mock"],
      MOCK,
    );
    t.after(() => stopProgram(again, "SIGKILL"));
    // A node that stopped a moment ago still has its lease, and this one has another key and folder.
    await again.says(/"event":"registered"/, 60_000);
    await again.says(/"tls":true,"loops":\d+,"event":"serving"/);
    const well = await grove(["doctor", "-data", restored, "-listen", first.address], MOCK);
    assert.match(well.stdout, /role of .*it is n1 of the cluster at .*, with TLS/);
  },
);

test(
  "a node with certificates of its own is not served alone, plain or under another id unless -new_role says so",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("grove-e2e-");
    const cluster = await startCertificateCluster(t, folder, 90);
    const files = join(folder, "own");
    await groveOk(["ca", "issue", "n1", "-ca_dir", cluster.caDir, "-host", "127.0.0.1", "-out", files]);
    const data = join(folder, "data");
    const start = async (...flags: string[]): Promise<Place & Program> => {
      const place = await freePlace();
      const words = [
        "fileserver",
        "-data",
        data,
        "-listen",
        place.address,
        "-reserve",
        "1MiB",
        "-mock",
        ...flags,
      ];
      const program = startGrove(words, MOCK);
      t.after(() => stopProgram(program, "SIGKILL"));
      return { ...program, ...place };
    };
    const member = ["-metaserver", `localhost:${cluster.metaserver.port}`];
    const tls = [
      "-tls_cert",
      join(files, "n1.crt"),
      "-tls_key",
      join(files, "n1.key"),
      "-tls_ca",
      join(files, "ca.crt"),
    ];
    const first = await start("-id", "n1", ...member, ...tls);
    await first.says(/"event":"registered"/);
    await first.says(/: serves .* on /);
    assert.equal((await stopProgram(first)).code, 0);
    const role = readFileSync(join(data, "served_as.json"), "utf8");

    for (const [flags, less] of [
      [
        [],
        /would serve it alone, without TLS, as [a-z0-9-]+\. Serve it as it was: 'grove fileserver .* -id n1 -metaserver localhost:\d+ /,
      ],
      [["-id", "n1", ...tls], /would serve it alone\. /],
      [["-id", "n1", ...member], /would serve it without TLS\. /],
      [["-id", "n2", ...member, ...tls], /would serve it as n2\. .*-new_role/],
      // Without certificates the message does not suggest the flag that serves without them.
      [["-id", "n1", "-listen", "0.0.0.0:50051"], /would serve it alone, without TLS\. /],
    ] as const) {
      const { code, stdout, stderr } = await (await start(...flags)).ended;
      assert.notEqual(code, 0);
      assert.equal(stdout, "");
      assert.match(stderr, less);
      assert.equal(stderr.trim().split("\n").length, 1, stderr);
    }
    assert.equal(readFileSync(join(data, "served_as.json"), "utf8"), role);

    const meant = await start("-id", "n1", "-new_role");
    await meant.says(/: serves .* on /);
    assert.match(meant.output(), /"now":"alone, without TLS","event":"new_role"/);
    await stopProgram(meant);
    const doctor = await grove(["doctor", "-data", data, "-listen", meant.address], MOCK);
    assert.match(doctor.stdout, /it belongs to cluster [0-9A-Z]{26}, and was served alone last/);
    // Without a change of role, and for a larger role, no flag is needed.
    const alone = await start("-id", "n1");
    await alone.says(/: serves .* on /);
    await stopProgram(alone);
    const back = await start("-id", "n1", ...member, ...tls);
    await back.says(/"event":"registered"/);
    await stopProgram(back);

    // Another key on the same folder: it proves to be the next process, and waits for no lease.
    const other = join(folder, "other");
    await groveOk(["ca", "issue", "n1", "-ca_dir", cluster.caDir, "-host", "127.0.0.1", "-out", other]);
    const renewed = tls.map((word) => word.replace(files, other));
    const next = await start("-id", "n1", ...member, ...renewed);
    await next.says(/"event":"registered"/);
    assert.doesNotMatch(next.output(), /NODE_ID_HELD/);
  },
);
