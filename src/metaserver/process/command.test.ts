// Runs `grove metaserver` as a process of its own, from its flags to its end.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { openDirectoryReader } from "#metaserver/directory/open-directory.ts";
import { verifyAudit } from "#security/audit/verify-audit.ts";
import { GROVE_ENTRY } from "#testing/grove-program.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Health } from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { as, nodeMessage, refused } from "./meta-server.fixture.ts";

const TIMEOUT = { timeout: 60_000 };

interface Started {
  readonly child: ChildProcess;
  /** The log so far. */
  log(): string;
  readonly channel: GrpcChannel;
  stop(signal: NodeJS.Signals): Promise<number | null>;
}

async function start(
  t: TestContext,
  folder: string,
  env: NodeJS.ProcessEnv = {},
  mode: readonly string[] = ["-mock"],
): Promise<Started> {
  const flags = [...mode, "-reflection", "-listen", "127.0.0.1:0", "-data", folder];
  const child = spawn(process.execPath, [GROVE_ENTRY, "metaserver", ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...env },
  });
  t.after(() => child.kill("SIGKILL"));
  let log = "";
  await new Promise<void>((resolve) => {
    // Read on to the end: a full pipe would block the process's log.
    child.stderr.on("data", (chunk: Buffer) => {
      log += String(chunk);
      if (log.includes('"event":"serving"')) resolve();
    });
    child.stderr.on("end", resolve);
  });
  const address = /"address":"([^"]+)"/.exec(log)?.[1];
  assert.ok(address, log);
  const channel = new GrpcChannel({ addresses: [address] });
  t.after(() => channel.close());
  return {
    child,
    channel,
    log: () => log,
    async stop(signal) {
      channel.close();
      const exit = once(child, "exit");
      child.kill(signal);
      const [code] = (await exit) as [number | null];
      return code;
    },
  };
}

test(
  "it serves, stops with exit code 0 on SIGTERM, and comes back as the same cluster",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("metaserver-");
    const first = await start(t, folder);
    assert.equal(
      (await createClient(Health, first.channel).check({ service: MetaServer.typeName })).status,
      1,
    );
    const client = createClient(MetaServer, first.channel);
    const { clusterId } = await client.registerFileServer(nodeMessage("a"));
    const route = await client.navigate({}, as("u@example.com"));
    const { appPassword } = await client.createAppPassword({ name: "laptop" }, as("u@example.com"));
    assert.equal(await first.stop("SIGTERM"), 0);
    const { broken, lines } = await verifyAudit(folder);
    assert.deepEqual([broken, lines], [undefined, 1]);
    const line = await readFile(join(folder, "audit", "0000000000000001.log"), "utf8");
    assert.match(line, new RegExp(`"act":"app_password.create".*app:${appPassword?.id}`));
    assert.equal((await readFile(join(folder, "cluster_id"), "utf8")).trim(), clusterId);

    const second = await start(t, folder);
    const again = createClient(MetaServer, second.channel);
    assert.equal((await again.navigate({}, as("u@example.com"))).rootId, route.rootId);
    await second.stop("SIGKILL");
  },
);

test(
  "outside mock mode a mock token is refused with a fatal security event in the log, without the token (spec 5.7)",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("metaserver-");
    const started = await start(t, folder, { SVC_AUTH_MOCK: "0" }, []);
    const client = createClient(MetaServer, started.channel);
    await refused(client.navigate({}, as("u@example.com")), 16, "MOCK_TOKEN");
    assert.equal(await started.stop("SIGTERM"), 0);
    const line = started
      .log()
      .split("\n")
      .find((text) => text.includes('"event":"security_event"'));
    const event = JSON.parse(line ?? "{}") as Record<string, unknown>;
    assert.deepEqual(
      [event["level"], event["type"], event["fatal"], event["ip_seen"]],
      ["error", "mock_token", true, "127.0.0.1"],
    );
    assert.doesNotMatch(started.log(), /u@example\.com/);
    const store = await openDirectoryReader(`sqlite:${join(folder, "metadata.db")}`, { clock: systemClock });
    t.after(() => store.close());
    const [report] = await store.securityReports();
    assert.match(report?.document ?? "", /"type":"mock_token","fatal":true,.*"ip_seen":"127\.0\.0\.1"/);
    assert.doesNotMatch(report?.document ?? "", /u@example\.com/);
  },
);

test(
  "after kill -9 and the loss of its store it waits for the FileServers before it places new roots (D19)",
  TIMEOUT,
  async (t) => {
    const folder = scratchFolder("metaserver-");
    const first = await start(t, folder);
    const { clusterId } = await createClient(MetaServer, first.channel).registerFileServer(nodeMessage("a"));
    await first.stop("SIGKILL");
    for (const suffix of ["", "-wal", "-shm"])
      await rm(join(folder, `metadata.db${suffix}`), { force: true });

    const client = createClient(MetaServer, (await start(t, folder)).channel);
    const roots = [{ owner: "u@example.com", rootId: "R", version: 1n }];
    assert.equal((await client.heartbeat({ fsId: "a", epoch: 1n })).known, false);
    assert.equal(
      (await client.registerFileServer(nodeMessage("a", { clusterId, roots }))).clusterId,
      clusterId,
    );
    assert.equal((await client.navigate({}, as("u@example.com"))).rootId, "R");
    await refused(client.navigate({}, as("v@example.com")), 14, "STARTING");
  },
);

test("a second one on the same store, and flags that make no sense, end with a sentence (D24)", {
  // Many processes, one after another.
  timeout: 120_000,
}, async (t) => {
  const folder = scratchFolder("metaserver-");
  await start(t, folder);
  const fails = async (exitCode: number, sentence: RegExp, ...flags: string[]): Promise<void> => {
    const child = spawn(process.execPath, [GROVE_ENTRY, "metaserver", ...flags], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    t.after(() => child.kill("SIGKILL"));
    let text = "";
    child.stderr.on("data", (chunk: Buffer) => {
      text += String(chunk);
    });
    const [code] = (await once(child, "close")) as [number | null];
    assert.equal(code, exitCode, text);
    assert.match(text, sentence);
    assert.doesNotMatch(text, /a-secret/);
  };
  const data = ["-data", folder];
  await fails(
    8,
    /another process has opened this metadata store/,
    "-mock",
    "-listen",
    "127.0.0.1:0",
    ...data,
  );
  await fails(1, /add -insecure/, "-mock", "-listen", "0.0.0.0:0", ...data);
  await fails(
    1,
    /cannot listen on 203.0.113.1:1/,
    "-mock",
    "-insecure",
    "-listen",
    "203.0.113.1:1",
    "-data",
    `${folder}/2`,
  );
  // It serves by then, and ends all the same.
  const taken = createServer().listen(0, "127.0.0.1");
  t.after(() => taken.close());
  await once(taken, "listening");
  const { port } = taken.address() as AddressInfo;
  await fails(
    1,
    /cannot listen for metrics on 127.0.0.1:.*choose another with -metrics/,
    "-mock",
    "-listen",
    "127.0.0.1:0",
    "-metrics",
    `127.0.0.1:${port}`,
    "-data",
    `${folder}/5`,
  );
  await fails(
    1,
    /metaserver: cannot read \/nope\.crt \(it is missing\)/,
    "-tls_cert",
    "/nope.crt",
    "-tls_key",
    "/nope",
    "-tls_ca",
    "/nope",
    "-data",
    `${folder}/3`,
  );
  await fails(1, /host:port/, "-mock", "-listen", "here", ...data);
  await fails(1, /all three of -tls_cert, -tls_key and -tls_ca/, "-tls_cert", "x.crt", ...data);
  const secret = "postgres://u:a-secret@127.0.0.1:1/d";
  const urlFile = `${folder}/url`;
  await writeFile(urlFile, `${secret}\n`, { mode: 0o644 });
  for (const [sentence, ...flags] of [
    [/a password in -meta can be read/, "-meta", secret],
    [/others may read .*url: chmod 600/, "-meta_file", urlFile],
    [/not both/, "-meta_file", urlFile, "-meta", "sqlite:x"],
    [/knows no option sslmod/, "-meta", "postgres://u@h/d?sslmod=off"],
    [/sqlite:PATH or postgres:/, "-meta", "mysql://u@h/d"],
  ] as const) {
    await fails(1, sentence, "-mock", "-listen", "127.0.0.1:0", ...flags, "-data", `${folder}/4`);
  }
});
