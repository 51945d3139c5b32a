// Tests of the demonstration's choices before the start: reserve, ports, passwords, state and output.
import assert from "node:assert/strict";
import { stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { DISK_RESERVE_BYTES } from "#base/limits.ts";
import { metricsPortOf } from "#base/metrics-port.ts";
import { shellWord } from "#base/shell-word.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { choosePorts } from "./demo-ports.ts";
import { adminPasswordHash, readOrMakeState, writeState } from "./demo-state.ts";
import { PortReservation } from "./port-reservation.ts";
import { ProviderMemory } from "./provider-memory.ts";
import { chooseReserve, DEMO_ROOM_BYTES } from "./reserve-choice.ts";
import { reserveWarning, shortPath, summaryLines } from "./up-screen.ts";

const TIMEOUT = { timeout: 60_000 };

test("the reserve is the specified 20 GiB, and less only on a disk with less than 4 GiB above it (spec 4.6.3)", () => {
  const enough = DISK_RESERVE_BYTES + DEMO_ROOM_BYTES;
  assert.deepEqual(chooseReserve(enough, undefined), { reserveBytes: DISK_RESERVE_BYTES, isLowered: false });
  assert.deepEqual(chooseReserve(enough - 1n, undefined), {
    reserveBytes: (enough - 1n) / 4n,
    isLowered: true,
  });
  assert.deepEqual(chooseReserve(0n, undefined), { reserveBytes: 0n, isLowered: true });
  for (const wanted of [0n, 1n, DISK_RESERVE_BYTES * 2n]) {
    assert.deepEqual(chooseReserve(1n, wanted), { reserveBytes: wanted, isLowered: false });
  }
  const said = reserveWarning({ freeBytes: 8n << 30n, reserveBytes: 2n << 30n }).join("\n");
  for (const words of ["8 GiB", "20 GiB", "2 GiB", "For this demonstration only"])
    assert.ok(said.includes(words), words);
});

test(
  "ports stay as they were last time while they are free, and move when they are not",
  TIMEOUT,
  async (t) => {
    const first = await choosePorts(2, undefined);
    assert.equal(new Set([first.idp, first.metaserver, ...first.nodes]).size, 4);
    assert.deepEqual(await choosePorts(2, first), first);
    const [node = 0] = first.nodes;
    const blocker = createServer();
    await new Promise<void>((resolve) => blocker.listen(metricsPortOf(node), "127.0.0.1", resolve));
    t.after(() => blocker.close());
    const second = await choosePorts(2, first);
    assert.deepEqual([second.metaserver, second.nodes[1]], [first.metaserver, first.nodes[1]]);
    assert.notEqual(second.nodes[0], node);
    assert.equal(new Set([second.idp, second.metaserver, ...second.nodes]).size, 4);
  },
);

test(
  "ports that another cluster holds are passed over while nobody listens on them, until it lets go",
  TIMEOUT,
  async (t) => {
    const [one, other] = [new PortReservation(), new PortReservation()];
    t.after(() => {
      one.letGo();
      other.letGo();
    });
    const first = await one.choose(1, undefined);
    const second = await other.choose(1, first);
    const all = [first, second].map(({ idp, metaserver, console, door, nodes }) => [
      idp,
      metaserver,
      console,
      door,
      ...nodes,
    ]);
    assert.equal(new Set(all.flat()).size, 10);
    one.letGo();
    assert.deepEqual(await new PortReservation().choose(1, first), first);
  },
);

test("passwords and keys are made once and kept in a file of mode 0600", TIMEOUT, async () => {
  const folder = scratchFolder("demo-");
  const state = await readOrMakeState(folder);
  await writeState(folder, state);
  assert.deepEqual(await readOrMakeState(folder), state);
  assert.equal((await stat(join(folder, "demo-state.json"))).mode & 0o777, 0o600);
  const secrets = [state.adminPassword, state.metricsToken, ...state.users.map(({ password }) => password)];
  assert.equal(new Set(secrets).size, secrets.length);
  for (const secret of secrets) assert.match(secret, /^[a-z2-9]{4}(?:-[a-z2-9]{4}){2,4}$/);
  assert.match(adminPasswordHash(state), /^[0-9a-f]{64}$/);
  for (const damaged of ['{"schema":2}', '{"schema":1,']) {
    await writeFile(join(folder, "demo-state.json"), damaged);
    await assert.rejects(
      readOrMakeState(folder),
      (error) =>
        isGroveError(error, "BAD_ARGUMENT") && /demo-state\.json is not as it should/.test(error.message),
    );
  }
});

test("the lines to type next can be pasted as they stand, also for a folder with blanks", () => {
  const document = {
    metaserver: "127.0.0.1:50050",
    console: "http://127.0.0.1:8080",
    door: "http://127.0.0.1:8070",
    admin_password: "admin's",
    metrics_token: "token",
    nodes: [],
    ca: null,
    mock: false,
    idp: null,
    users: [{ email: "alice@example.com", password: "alice's" }],
    pids: {},
  };
  const lines = summaryLines({
    document,
    clusterFile: "/home/me/my files/cluster.json",
    logFolder: "/home/me/my files/logs",
    program: "./grove",
    sample: "node_modules",
    cwd: "/home/me",
  }).map((line) => stripVTControlCharacters(line));
  assert.ok(lines.includes("  ./grove login --cluster 'my files/cluster.json'"));
  assert.ok(lines.includes("  ./grove put -r node_modules"));
  assert.ok(lines.some((line) => /alice@example\.com +alice's$/.test(line)));
  assert.ok(!lines.join("\n").includes("token"));
  assert.equal(shellWord("it's"), `'it'\\''s'`);
  assert.equal(shortPath("/elsewhere/x", "/home/me"), "/elsewhere/x");
});

test("what the provider remembers runs out, is bounded, and can be taken back", async () => {
  const clock = new ManualClock();
  const memory = new ProviderMemory(clock);
  const codes = memory.adapterFor("AuthorizationCode");
  const sessions = memory.adapterFor("Session");
  await codes.upsert("1", { grantId: "g" }, 60);
  await sessions.upsert("1", { uid: "u" }, 120);
  await codes.consume("1");
  assert.equal((await codes.find("1"))?.consumed, Math.floor(clock.wallMs() / 1_000));
  assert.ok(await sessions.findByUid("u"));
  clock.advance(60_000);
  assert.equal(await codes.find("1"), undefined);
  assert.ok(await sessions.find("1"));
  await codes.upsert("2", { grantId: "g" }, 60);
  await codes.revokeByGrantId("g");
  assert.equal(await codes.find("2"), undefined);
  await sessions.destroy("1");
  assert.equal(await sessions.findByUid("u"), undefined);
  for (let id = 0; id <= 10_000; id++) await codes.upsert(String(id), {}, 60);
  assert.equal(await codes.find("0"), undefined);
  assert.ok(await codes.find("1"));
});
