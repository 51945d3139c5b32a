// Tests of consoles killed or restarted during actions, and two at once: records, locks, nodes (T14, E-04).
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";
import { type SshServer, withoutOwnBootId } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import {
  ActionConsole,
  type ConsoleRequest,
  countRunning,
  custom,
  enrol,
  isRunning,
} from "./action-console.ts";
import { openActionSite } from "./action-site.ts";
import { Endings, freePlace, grove } from "./processes.ts";

const skip = withoutOwnBootId();
const MARK = `1000.${process.pid}`;
const SLEEP = `sleep ${MARK}`;
const endings = new Endings();

let n1: SshServer;
let n2: SshServer;
let n3: SshServer;
let consoleRequest: ConsoleRequest;

before(async () => {
  if (skip !== false) return;
  const { servers, consoleRequest: site } = await openActionSite(endings);
  const { store, keyFile } = site;
  n1 = await servers.start();
  n2 = await servers.start();
  n3 = await servers.start({ bootId: "own-first" });
  const { address } = await freePlace();
  consoleRequest = { ...site, address };
  await enrol(store, "n1", n1);
  await enrol(store, "n2", n2);
  // The console's own host: it is restarted by the words that started it.
  const words = [GROVE_LAUNCHER, "admin", "-data", consoleRequest.data, "-listen", address, "-meta", store];
  const argv = [...words, "-ssh_key", keyFile, "-allow_nodes", "127.0.0.0/8"];
  const fileserver = { argv: ["sleep", `2000.${process.pid}`], pid_file: "fileserver.pid" };
  const admin = { argv, pid_file: "admin.pid", log_file: "admin.log" };
  await enrol(store, "n3", n3, { services: { fileserver, admin } });
  endings.after(async () => {
    if (isRunning(fileserver.argv.join(" "))) process.kill(fileserverPid(), "SIGKILL");
  });
});

after(() => endings.end());

function fileserverPid(): number {
  return Number(readFileSync(join(n3.home, "fileserver.pid"), "utf8").split("\n")[0]);
}

function states({ targets }: ActionRecord): string[] {
  return targets.map(({ node_id, state }) => `${node_id} ${state}`);
}

const running = (line: string): Promise<true> => until(() => isRunning(line), line);
/** A running action must have ended once a second console has checked. */
const settled = (service: ActionConsole, id: string): Promise<ActionRecord> =>
  until(async () => {
    const record = await service.record(id);
    return record.targets.some(
      ({ state, message }) => state === "running" || (state === "unknown" && message === undefined),
    )
      ? undefined
      : record;
  }, `what became of ${id}`);

test("of two batches that overlap one runs and one gets 409 at once, which names who holds what; the free node stays free (spec 4.7)", {
  skip,
}, async (t) => {
  const service = await ActionConsole.start(t, consoleRequest);
  const id = await service.begin(custom(["n2"], SLEEP, { timeout_seconds: 600 }));
  const refused = await service.refused(custom(["n1", "n2"], "touch never"));
  assert.deepEqual([refused.status, refused.code], [409, "NODES_LOCKED"]);
  assert.deepEqual(
    refused.locked?.map(({ node_id, action_id }) => [node_id, action_id]),
    [["n2", id]],
  );
  assert.ok(Math.abs((refused.locked?.[0]?.since ?? 0) - Date.now() / 1_000) < 60);
  assert.equal((await service.execute(custom(["n1"], "true"))).state, "succeeded");
  assert.equal(existsSync(join(n1.home, "never")), false);
  const batches = await Promise.all(
    Array.from({ length: 30 }, (_, at) =>
      service.ask("/api/actions/execute", custom(at % 2 === 0 ? ["n1", "n3"] : ["n3", "n1"], "true")),
    ),
  );
  const statuses = batches.map(({ status }) => status);
  assert.ok(
    statuses.includes(200) && statuses.every((status) => status === 200 || status === 409),
    statuses.join(),
  );
  assert.equal((await service.execute(custom(["n1", "n3"], "true"))).state, "succeeded");
  await service.ask(`/api/actions/${id}/cancel`, {});
  assert.equal((await service.ended(id)).state, "cancelled");
  await service.stop();
});

test("after kill -9 in the middle of a rolling batch nothing of it runs, its record says so, and its nodes are free (D7, E-04)", {
  skip,
}, async (t) => {
  const killed = await ActionConsole.start(t, consoleRequest);
  const id = await killed.begin(
    custom(["n1", "n2", "n3"], `echo said; ${SLEEP} & ${SLEEP}`, {
      strategy: { mode: "rolling", max_parallel: 2 },
      timeout_seconds: 600,
    }),
  );
  await until(
    async () =>
      (await killed.record(id)).targets.filter(({ state }) => state === "running").length === 2
        ? true
        : undefined,
    "two nodes",
  );
  await until(() => countRunning(SLEEP) === 4, "all of it");
  await killed.stop("SIGKILL");
  assert.equal(countRunning(SLEEP), 4, "what runs on nodes does not end with the console");
  const service = await ActionConsole.start(t, consoleRequest);
  const early = await service.record(id);
  assert.equal(early.state, "orphaned");
  const record = await settled(service, id);
  assert.equal(isRunning(SLEEP), false);
  assert.deepEqual(
    [record.state, ...states(record)],
    ["orphaned", "n1 cancelled", "n2 cancelled", "n3 skipped"],
    JSON.stringify(record.targets),
  );
  const audited = await until(async () => {
    const { entries } = (await service.ask("/api/audit?act=action.end")).json as {
      entries: { actor: string; subject: string; detail: { state: string } }[];
    };
    return entries.find(({ subject }) => subject === id);
  }, "its end in the audit log");
  assert.deepEqual([audited.actor, audited.detail.state], [record.operator.session, "orphaned"]);
  assert.equal((await service.execute(custom(["n1", "n2", "n3"], "true"))).state, "succeeded");
  await service.stop();
  const file = JSON.parse(readFileSync(join(consoleRequest.data, "command_history.json"), "utf8")) as {
    records: ActionRecord[];
  };
  assert.deepEqual(
    file.records.filter(({ state }) => state === "running" || state === "queued"),
    [],
  );
});

test("what a killed console left is still locked while the next one ends it (E-04)", { skip }, async (t) => {
  const killed = await ActionConsole.start(t, consoleRequest);
  const line = `sleep 20.${process.pid}`;
  const stubborn = `(trap "" TERM; ${line})`;
  const ids = [
    await killed.begin(custom(["n1"], stubborn, { timeout_seconds: 600 })),
    await killed.begin(custom(["n2"], stubborn, { timeout_seconds: 600 })),
  ];
  await until(() => countRunning(line) === 2, "both");
  await killed.stop("SIGKILL");
  const service = await ActionConsole.start(t, consoleRequest);
  for (const [at, node] of ["n1", "n2"].entries()) {
    const refused = await service.refused(custom([node], "touch never"));
    assert.deepEqual([refused.status, refused.locked?.map(({ action_id }) => action_id)], [409, [ids[at]]]);
  }
  for (const id of ids) await settled(service, id);
  assert.equal(isRunning(line), false);
  assert.equal(existsSync(join(n1.home, "never")), false);
  assert.equal((await service.execute(custom(["n1", "n2"], "true"))).state, "succeeded");
  await service.stop();
});

test("a console that is asked to stop ends what it runs, and says so in the records (D7)", {
  skip,
}, async (t) => {
  const service = await ActionConsole.start(t, consoleRequest);
  const id = await service.begin(custom(["n1"], SLEEP, { timeout_seconds: 600 }));
  // One action waits for the end of another.
  const waiting = service.execute(custom(["n2"], SLEEP, { timeout_seconds: 600 })).catch(() => undefined);
  await until(() => countRunning(SLEEP) === 2, "both");
  const ended = await service.stop();
  assert.deepEqual([ended?.code, isRunning(SLEEP)], [0, false]);
  const next = await ActionConsole.start(t, consoleRequest);
  const record = await next.record(id);
  assert.deepEqual([record.state, ...states(record)], ["cancelled", "n1 cancelled"]);
  assert.deepEqual([(await next.history())[0]?.state, (await waiting)?.state], ["cancelled", "cancelled"]);
  await next.stop();
});

test("a second console on the same folder is refused, and leaves the first and its actions alone", {
  skip,
}, async (t) => {
  const service = await ActionConsole.start(t, consoleRequest);
  const id = await service.begin(custom(["n1"], SLEEP, { timeout_seconds: 600 }));
  await running(SLEEP);
  const { code, stderr } = await grove([
    "admin",
    "-data",
    consoleRequest.data,
    "-listen",
    (await freePlace()).address,
    "-meta",
    consoleRequest.store,
  ]);
  assert.notEqual(code, 0);
  assert.match(stderr, /in use by another console/);
  assert.equal(isRunning(SLEEP), true);
  assert.equal((await service.record(id)).state, "running");
  await service.ask(`/api/actions/${id}/cancel`, {});
  assert.equal((await service.ended(id)).state, "cancelled");
  await service.stop();
});

test("the console restarts itself: the record is handed over, and the next console says that it succeeded (T14)", {
  skip,
}, async (t) => {
  const first = await ActionConsole.start(t, consoleRequest);
  await first.stop();
  // From here on it is a daemon of the node, started as the action starts it.
  const outside = await ActionConsole.start(t, {
    ...consoleRequest,
    data: `${consoleRequest.data}-outside`,
    address: (await freePlace()).address,
  });
  assert.equal(
    (
      await outside.execute({
        action: "restart",
        nodes: ["n3"],
        restart_mode: "binary",
        target_service: "admin",
      })
    ).state,
    "succeeded",
  );
  await outside.stop();
  const pid = (): number => Number(readFileSync(join(n3.home, "admin.pid"), "utf8").split("\n")[0]);
  endings.after(async () => {
    if (isRunning(pid())) process.kill(-pid(), "SIGKILL");
  });
  const before = pid();
  const service = await until(
    () => ActionConsole.at(consoleRequest.address ?? "").catch(() => undefined),
    "the console",
  );
  const id = await service.begin({
    action: "restart",
    nodes: "all",
    restart_mode: "binary",
    target_service: "all",
  });
  await until(() => !(pid() === before || isRunning(before)), "another process");
  const after = await until(
    () => ActionConsole.at(consoleRequest.address ?? "").catch(() => undefined),
    "the next console",
  );
  const record = await until(async () => {
    const found = await after.record(id);
    return found.finished_at === undefined ? undefined : found;
  }, "its end");
  assert.deepEqual([record.state, ...states(record)], ["succeeded", "n3 succeeded"], JSON.stringify(record));
  assert.equal(countRunning(`sleep 2000.${process.pid}`), 1, "what else the node runs was restarted first");
  assert.equal((await after.execute(custom(["n3"], "true"))).state, "succeeded");
  process.kill(pid(), "SIGTERM");
  await until(() => !isRunning(pid()), "its end");
});

test("the console's own host reboots: the record is handed over, and a new boot id is its success (T14, D7)", {
  skip,
}, async (t) => {
  n3.addProgram("sudo", '[ "$*" = "-n reboot" ] && : >"$HOME/reboot"; exec sleep 5');
  const killed = await ActionConsole.start(t, consoleRequest);
  const id = await killed.begin({ action: "reboot", nodes: ["n1", "n3"] });
  await until(() => existsSync(join(n3.home, "reboot")), "the reboot");
  assert.deepEqual([(await killed.record(id)).state], ["handed_over"]);
  await killed.stop();
  await n3.stop({ cut: true });
  n3.changeBootId("own-second");
  await n3.start();
  const service = await ActionConsole.start(t, consoleRequest);
  const record = await service.ended(id);
  const own = record.targets.find(({ node_id }) => node_id === "n3");
  assert.deepEqual(
    [own?.state, own?.boot_id_before, own?.boot_id_after],
    ["succeeded", "own-first", "own-second"],
    JSON.stringify(own),
  );
});
