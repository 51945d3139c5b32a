// The walk of docs/install.md: three machines from nothing to a file that a person has moved, by `grove init`.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Ended, type Program, stopProgram } from "#e2e/processes.ts";
import { startWalk, type WalkMachine } from "#e2e/walk-machines.ts";
import { makeKey, signToken } from "#security/identity/provider.fixture.ts";
import { startPrivateIssuer } from "#testing/private-issuer.ts";
import { until } from "#testing/until.ts";

/** What the walk promises a person. */
const TEN_MINUTES_MS = 600_000;

const walk = startWalk();
const running: Program[] = [];
after(async () => {
  await Promise.all(running.map((program) => stopProgram(program, "SIGKILL")));
  walk.end();
});

/** Starts the services that a machine was set up with. */
async function startServices(machine: WalkMachine, services: readonly string[]): Promise<void> {
  for (const service of services) {
    const program = machine.startUnit(service);
    running.push(program);
    await program.says(/"event":"serving"|"msg":"serving"|: serves |serving/);
  }
}

/** Gets JSON from the console as a machine sees it. */
async function fromConsole(machine: WalkMachine, host: string, path: string): Promise<unknown> {
  const script = `
    const { get } = require("node:https");
    const ca = JSON.parse(require("node:fs").readFileSync("cluster.json", "utf8")).ca_pem;
    get({ host: ${JSON.stringify(host)}, port: 8080, path: ${JSON.stringify(path)}, ca }, (answer) => answer.pipe(process.stdout));`;
  const { stdout, stderr } = await machine.start(process.execPath, ["-e", script]).ended;
  assert.notEqual(stdout, "", stderr);
  return JSON.parse(stdout);
}

test("three machines are set up by questions' answers, and a person's file comes back, within ten minutes", {
  timeout: TEN_MINUTES_MS,
}, async (t) => {
  const key = makeKey("RS256", "k1");
  const issuer = await startPrivateIssuer(walk.ownAddress, [key.jwk]);
  t.after(() => issuer.stop());
  const [n1, n2, n3] = walk.machines;
  assert.ok(n1 !== undefined && n2 !== undefined && n3 !== undefined);
  const below = (machine: WalkMachine): string[] => ["-below", machine.folder];
  const apartOr = (machine: WalkMachine): string[] => (walk.isApart ? [] : [`listen = ${machine.address}`]);

  const answers = [
    "# the first machine",
    "roles = metaserver fileserver console",
    `name = ${n1.name}`,
    "id = n1",
    `provider = ${issuer.issuer}`,
    `provider_ca = ${issuer.caFile}`,
    "client_id = grove-walk",
    "reserve = 1GiB",
    ...(walk.isApart ? [] : ["networks = 127.0.0.0/8"]),
    ...apartOr(n1),
  ];
  writeFileSync(join(n1.folder, "n1.answers"), answers.join("\n"));
  const first = await n1.grove(["init", "-answers", "n1.answers", ...below(n1)]);
  assert.equal(first.code, 0, first.stderr);
  assert.match(first.stdout, /To undo this run:/);
  assert.match(first.stdout, /grove init invite n2 n2\.example\.net/);
  assert.doesNotMatch(
    first.stdout,
    new RegExp(readFileSync(join(n1.folder, "data/admin/first-password"), "utf8").trim()),
  );
  await startServices(n1, ["metaserver", "fileserver", "admin"]);

  for (const [id, machine] of [
    ["n2", n2],
    ["n3", n3],
  ] as const) {
    const invited: Ended = await n1.grove(["init", "invite", id, machine.name, ...below(n1)]);
    assert.equal(invited.code, 0, invited.stderr);
    const carried = readFileSync(join(n1.folder, `${id}.answers`), "utf8");
    writeFileSync(
      join(machine.folder, `${id}.answers`),
      [carried, "reserve = 1GiB", ...apartOr(machine)].join("\n"),
    );
    const joined = await machine.grove(["init", "-answers", `${id}.answers`, ...below(machine)]);
    assert.equal(joined.code, 0, joined.stderr);
    await startServices(machine, ["fileserver"]);
    // Its token is used up, and the file may be given again all the same.
    const again = await machine.grove(["init", "-answers", `${id}.answers`, ...below(machine)]);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /nothing was changed/);
  }

  writeFileSync(join(n3.folder, "cluster.json"), readFileSync(join(n1.folder, "data/cluster.json")));
  await until(async () => {
    const { nodes } = (await fromConsole(n3, n1.name, "/api/cluster")) as { nodes: { status: string }[] };
    return nodes.length === 3 && nodes.every(({ status }) => status === "online");
  });

  const nowS = Math.floor(Date.now() / 1_000);
  const claims = { iss: issuer.issuer, aud: "grove-walk", sub: "1", iat: nowS, exp: nowS + 3_600 };
  const token = signToken(key, { ...claims, email: "alice@example.com", email_verified: true });
  const login = await n3.grove(["login", "--cluster", "cluster.json", "--token-stdin"], {
    input: `${token}\n`,
  });
  assert.equal(login.code, 0, login.stderr);
  const bytes = Buffer.alloc(5_000_000, "walk ");
  writeFileSync(join(n3.folder, "sent"), bytes);
  for (const words of [
    ["put", "sent", "sent"],
    ["get", "sent", "got"],
  ]) {
    const moved = await n3.grove(words);
    assert.equal(moved.code, 0, moved.stderr);
  }
  assert.ok(readFileSync(join(n3.folder, "got")).equals(bytes));
});
