// Tests of the seven kinds of actions: `grove admin`, three sshds, real FileServers (spec 4.7, D7).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";
import { type SshServer, withoutOwnBootId } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import { ActionConsole, custom, enrol, isRunning } from "./action-console.ts";
import { openActionSite } from "./action-site.ts";
import { Endings, freePlace, type Place, startGrove, stopProgram } from "./processes.ts";

const skip = withoutOwnBootId();
const IDS = ["n1", "n2", "n3"] as const;
type Id = (typeof IDS)[number];
const endings = new Endings();

let nodes: Record<Id, SshServer>;
let places: Record<Id, Place>;
let origin: string;
let coordinator: string;
let console: ActionConsole;

before(async () => {
  if (skip !== false) return;
  const { folder, metaserver, servers, consoleRequest } = await openActionSite(endings);
  origin = makeOrigin(folder);
  coordinator = metaserver;
  const each = async <T>(make: (id: Id) => Promise<T>): Promise<Record<Id, T>> => {
    const made: [Id, T][] = [];
    for (const id of IDS) made.push([id, await make(id)]);
    return Object.fromEntries(made) as Record<Id, T>;
  };
  nodes = await each((id) => servers.start({ bootId: `${id}-first` }));
  places = await each(() => freePlace());
  for (const id of IDS) {
    const { home } = nodes[id];
    git(home, "clone", "-q", origin, "sources");
    const argv = [GROVE_LAUNCHER, ...fileServerWords(id)];
    const fileserver = {
      argv,
      cwd: home,
      env: { NO_COLOR: "it's 'so'" },
      pid_file: "fs.pid",
      log_file: "fs.log",
    };
    await enrol(consoleRequest.store, id, nodes[id], { repository: "sources", services: { fileserver } });
    endings.after(async () => kill(home));
  }
  console = await ActionConsole.start(endings, consoleRequest);
});

after(() => endings.end());

/** The words that start a node's FileServer. */
function fileServerWords(id: Id): string[] {
  const data = join(nodes[id].home, "data");
  const words = ["fileserver", "-data", data, "-id", id, "-mock", "-reserve", "1MiB"];
  return [...words, "-listen", places[id].address, "-metaserver", coordinator];
}

function git(cwd: string, ...words: string[]): string {
  const identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main"];
  return execFileSync("git", [...identity, ...words], { cwd, encoding: "utf8" }).trim();
}

/** A repository whose Makefile prints what it builds. */
function makeOrigin(folder: string): string {
  const path = join(folder, "origin");
  mkdirSync(path);
  git(path, "init", "-q");
  const lines = [
    "build:",
    "\t@echo building; git rev-parse HEAD > built; echo warned >&2",
    "broken:",
    "\t@exit 9",
  ];
  writeFileSync(join(path, "Makefile"), `${lines.join("\n")}\n`);
  git(path, "add", ".");
  git(path, "commit", "-qm", "first");
  return path;
}

function pidOf(home: string): number {
  return Number(readFileSync(join(home, "fs.pid"), "utf8").split("\n")[0]);
}

function kill(home: string): void {
  try {
    process.kill(-pidOf(home), "SIGKILL");
  } catch {
    // It did not run.
  }
}

function states({ targets }: ActionRecord): string[] {
  return targets.map(({ node_id, state }) => `${node_id} ${state}`);
}

async function isHealthy(id: Id): Promise<boolean> {
  return await fetch(`${places[id].metricsUrl}/health`)
    .then(({ ok }) => ok)
    .catch(() => false);
}

test("pull brings every node to the branch, and says from which commit to which; one that is not there fails (spec 4.7)", {
  skip,
}, async () => {
  const first = git(origin, "rev-parse", "HEAD");
  writeFileSync(join(origin, "news"), "x");
  git(origin, "add", ".");
  git(origin, "commit", "-qm", "second");
  const second = git(origin, "rev-parse", "HEAD");
  const record = await console.execute({ action: "pull", nodes: "all", branch: "main" });
  assert.deepEqual(
    record.targets.map(({ node_id, state, git_before, git_after }) => [
      node_id,
      state,
      git_before,
      git_after,
    ]),
    IDS.map((id) => [id, "succeeded", first, second]),
  );
  for (const id of IDS) assert.equal(git(join(nodes[id].home, "sources"), "rev-parse", "HEAD"), second);
  const none = await console.execute({ action: "pull", nodes: ["n1"], branch: "not/there" });
  assert.deepEqual([none.state, none.exit_code], ["failed", 1]);
  assert.match(none.stderr, /couldn't find remote ref/);
  git(join(nodes.n2.home, "sources"), "commit", "-q", "--allow-empty", "-m", "of its own");
  writeFileSync(join(origin, "news"), "y");
  git(origin, "commit", "-qam", "third");
  const apart = await console.execute({ action: "pull", nodes: ["n1", "n2"], branch: "main" });
  assert.equal(apart.state, "partly_failed");
  assert.deepEqual(states(apart), ["n1 succeeded", "n2 failed"]);
  git(join(nodes.n2.home, "sources"), "reset", "-q", "--hard", "origin/main");
});

test("build makes the target that is named, or build; its exit code is the record's (spec 4.7)", {
  skip,
}, async () => {
  const record = await console.execute({ action: "build", nodes: "all" });
  assert.equal(record.state, "succeeded");
  assert.deepEqual(
    record.targets.map(({ argv, stdout, stderr }) => [argv, stdout, stderr]),
    IDS.map(() => [["make", "build"], "building\n", "warned\n"]),
  );
  for (const id of IDS) {
    const sources = join(nodes[id].home, "sources");
    assert.equal(readFileSync(join(sources, "built"), "utf8").trim(), git(sources, "rev-parse", "HEAD"));
  }
  const broken = await console.execute({ action: "build", nodes: ["n3"], make_target: "broken" });
  assert.deepEqual([broken.state, broken.exit_code], ["failed", 2]);
});

test("restart in mode binary starts the node's own words, ends what ran before, and in rolling mode waits for health (spec 2.9)", {
  skip,
}, async () => {
  const rolling = { mode: "rolling", health_gate_seconds: 60 };
  const request = {
    action: "restart",
    nodes: "all",
    RestartMode: "binary",
    TargetService: "fileserver",
    strategy: rolling,
  };
  const started = await console.execute(request);
  assert.deepEqual(
    states(started),
    IDS.map((id) => `${id} succeeded`),
    JSON.stringify(started.targets),
  );
  const pids = IDS.map((id) => pidOf(nodes[id].home));
  for (const [at, id] of IDS.entries()) {
    const words = readFileSync(`/proc/${pids[at]}/cmdline`, "utf8").split("\0");
    assert.ok(words.includes("fileserver") && words.includes(places[id].address), words.join(" "));
    assert.ok(readFileSync(`/proc/${pids[at]}/environ`, "utf8").split("\0").includes("NO_COLOR=it's 'so'"));
    assert.equal(readFileSync(`/proc/${pids[at]}/cwd/fs.pid`, "utf8").split("\n")[0], String(pids[at]));
  }
  // The console knows them by now: the gate is one.
  await until(async () => {
    const { nodes: seen } = (await console.ask("/api/cluster")).json as { nodes: { status: string }[] };
    return seen.filter(({ status }) => status === "online" || status === "warning").length === 3
      ? true
      : undefined;
  }, "three nodes");
  const again = await console.execute(request);
  assert.deepEqual(
    states(again),
    IDS.map((id) => `${id} succeeded`),
    JSON.stringify(again.targets),
  );
  for (const [at, id] of IDS.entries()) {
    assert.notEqual(pidOf(nodes[id].home), pids[at]);
    assert.equal(isRunning(pids[at] ?? 0), false);
    assert.equal(await isHealthy(id), true);
  }
  const [one, two, three] = again.targets;
  assert.ok(
    (one?.finished_at ?? 0) <= (two?.started_at ?? 0) && (two?.finished_at ?? 0) <= (three?.started_at ?? 0),
  );
});

test("restart in mode systemctl and apt run the words that the sudoers file has, and nothing else (spec 4.7, T16)", {
  skip,
}, async () => {
  for (const id of IDS)
    nodes[id].addProgram(
      "sudo",
      'echo "$* $SYSTEMD_PAGER$DEBIAN_FRONTEND" >>"$HOME/sudo.log"; [ ! -e "$HOME/refuse" ]',
    );
  const said = (id: Id): string[] =>
    readFileSync(join(nodes[id].home, "sudo.log"), "utf8").trim().split("\n");
  const restart = await console.execute({ action: "restart", nodes: ["n1"], target_service: "all" });
  assert.equal(restart.state, "succeeded");
  assert.deepEqual(said("n1"), ["-n systemctl restart svc-fileserver cat"]);
  assert.equal((await console.execute({ action: "apt", nodes: ["n2"] })).state, "succeeded");
  assert.deepEqual(said("n2"), [
    "-n apt-get update noninteractive",
    "-n apt-get upgrade -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold noninteractive",
  ]);
  await console.execute({ action: "apt", nodes: ["n3"], AptMode: "update_only" });
  assert.deepEqual(said("n3"), ["-n apt-get update noninteractive"]);
  writeFileSync(join(nodes.n2.home, "refuse"), "");
  const refused = await console.execute({ action: "apt", nodes: ["n2"] });
  assert.deepEqual([refused.state, refused.exit_code, said("n2").length], ["failed", 1, 3]);
});

test("reboot has happened when the host has another boot id and its FileServer is healthy again (D7)", {
  skip,
}, async () => {
  const { home } = nodes.n3;
  nodes.n3.addProgram("sudo", '[ "$*" = "-n reboot" ] && : >"$HOME/reboot" && sleep 5');
  const id = await console.begin({ action: "reboot", nodes: ["n3"] });
  await until(() => existsSync(join(home, "reboot")), "the reboot");
  await nodes.n3.stop({ cut: true });
  kill(home);
  await sleep(500);
  assert.equal((await console.record(id)).state, "running");
  nodes.n3.changeBootId("n3-second");
  const signIns = (): number => nodes.n3.log.split("Accepted publickey").length;
  const signInsThen = signIns();
  await nodes.n3.start();
  // It is up again and has been polled, but its FileServer is not.
  await until(() => signIns() > signInsThen, "a look at it");
  await sleep(500);
  assert.equal((await console.record(id)).state, "running");
  const back = startGrove(fileServerWords("n3"));
  endings.after(() => stopProgram(back, "SIGKILL"));
  const record = await console.ended(id);
  const [target] = record.targets;
  assert.deepEqual(
    [record.state, target?.boot_id_before, target?.boot_id_after, target?.exit_code],
    ["succeeded", "n3-first", "n3-second", 0],
    JSON.stringify(target),
  );
  assert.equal(await isHealthy("n3"), true);
});

test("a custom command has its time and no more; what is cancelled is gone, children and all (spec 2.9, D7)", {
  skip,
}, async () => {
  const mark = `1000.${process.pid}`;
  const late = await console.execute(custom(["n1"], `echo begun; sleep ${mark}`, { TimeoutSeconds: 2 }));
  assert.deepEqual([late.state, late.targets[0]?.state, late.stdout], ["timed_out", "timed_out", "begun\n"]);
  assert.equal(isRunning(`sleep ${mark}`), false);
  const id = await console.begin(
    custom(["n1", "n2"], `sleep ${mark} & setsid sleep ${mark} & sleep ${mark}`, { timeout_seconds: 600 }),
  );
  await until(() => isRunning(`sleep ${mark}`), "children");
  await sleep(500);
  assert.equal((await console.ask(`/api/actions/${id}/cancel`, {})).status, 202);
  const cancelled = await console.ended(id);
  assert.deepEqual([cancelled.state, ...states(cancelled)], ["cancelled", "n1 cancelled", "n2 cancelled"]);
  assert.equal(isRunning(`sleep ${mark}`), false);
});

test("a rolling batch stops at the node that does not get healthy, and leaves the rest alone (D7)", {
  skip,
}, async () => {
  kill(nodes.n2.home);
  const strategy = { mode: "rolling", health_gate_seconds: 15 };
  const record = await console.execute(custom([...IDS], "echo hello >>hello", { strategy }));
  assert.deepEqual(states(record), ["n1 succeeded", "n2 failed", "n3 skipped"]);
  assert.equal(record.state, "partly_failed");
  assert.equal(record.targets[1]?.reason, "NOT_HEALTHY");
  assert.deepEqual(
    IDS.map((id) => existsSync(join(nodes[id].home, "sources", "hello"))),
    [true, true, false],
  );
});

test("every action is in the audit log with its operator, and no file of an action stays on a node", {
  skip,
}, async () => {
  const acts = await console.audit();
  const records = await console.history();
  for (const { id, operator } of records) {
    const mine = acts
      .filter(({ subject }) => subject === id)
      .map(({ act, actor }) => `${String(act)} ${String(actor)}`);
    assert.ok(
      mine.includes(`action.start ${operator.session}`) && mine.includes(`action.end ${operator.session}`),
      mine.join(),
    );
  }
});
