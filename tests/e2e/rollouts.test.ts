// Tests of a rollout whose console is killed: state kept, nothing runs on, one call back (4.7, D7, E-06).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type SshServer, withoutSshServer } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import { ActionConsole, type ConsoleRequest, countRunning, enrol } from "./action-console.ts";
import { openActionSite } from "./action-site.ts";
import { Endings, freePlace } from "./processes.ts";

const skip = withoutSshServer();
const SLOW = `sleep 1000.${process.pid}`;
const SERVICE = `sleep 2000.${process.pid}`;
const endings = new Endings();

let nodes: readonly SshServer[];
let origin: string;
let consoleRequest: ConsoleRequest;

before(async () => {
  if (skip !== false) return;
  const { folder, servers, consoleRequest: site } = await openActionSite(endings);
  origin = join(folder, "origin");
  mkdirSync(origin);
  git(origin, "init", "-q", "-b", "main");
  commit("build:\n\ttrue\n");
  nodes = [await servers.start(), await servers.start()];
  for (const [at, node] of nodes.entries()) {
    git(node.home, "clone", "-q", origin, "grove");
    const service = { argv: SERVICE.split(" "), pid_file: "service.pid", log_file: "service.log" };
    const services = { metaserver: service };
    await enrol(site.store, `n${at + 1}`, node, { repository: "grove", services });
  }
  consoleRequest = { ...site, address: (await freePlace()).address };
});

after(async () => {
  for (const { home } of nodes ?? []) {
    try {
      process.kill(Number(readFileSync(join(home, "service.pid"), "utf8").split("\n")[0]));
    } catch {
      // It does not run.
    }
  }
  await endings.end();
});

function git(cwd: string, ...args: string[]): string {
  const who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
  return execFileSync("git", [...who, ...args], { cwd, encoding: "utf8" }).trim();
}

function commit(makefile: string): string {
  writeFileSync(join(origin, "Makefile"), makefile);
  git(origin, "add", ".");
  git(origin, "commit", "-q", "-m", "next");
  return git(origin, "rev-parse", "HEAD");
}

const commits = (): string[] => nodes.map(({ home }) => git(join(home, "grove"), "rev-parse", "HEAD"));

async function ended(admin: ActionConsole, id: string): Promise<RolloutRecord> {
  return await until(async () => {
    const record = (await admin.ask(`/api/rollouts/${id}`)).json as RolloutRecord;
    return record.state === "running" ? undefined : record;
  }, `the end of ${id}`);
}

async function begin(admin: ActionConsole): Promise<RolloutRecord> {
  const { status, json, text } = await admin.ask("/api/rollouts", {
    nodes: "all",
    branch: "main",
    restart_mode: "binary",
    target_service: "metaserver",
    gates: { observe_seconds: 0 },
  });
  assert.equal(status, 202, text);
  return json as RolloutRecord;
}

test("a rollout outlives no console: killed in the middle, it is interrupted for the next, which brings its nodes back", {
  skip,
}, async (t) => {
  const killed = await ActionConsole.start(t, consoleRequest);
  const good = commit("build:\n\ttrue\n# good\n");
  const first = await ended(killed, (await begin(killed)).id);
  assert.deepEqual([first.state, first.reason, commits()], ["succeeded", undefined, [good, good]]);
  assert.equal(countRunning(SERVICE), 2);
  const slow = commit(`build:\n\t${SLOW}\n`);
  const { id } = await begin(killed);
  await until(() => countRunning(SLOW) > 0, "the build");
  await killed.stop("SIGKILL");
  const next = await ActionConsole.start(t, consoleRequest);
  const record = await ended(next, id);
  assert.deepEqual(
    [record.state, record.can_go_back, ...record.nodes.map(({ state, step }) => `${state} ${step}`)],
    ["interrupted", true, "unknown build", "skipped undefined"],
  );
  assert.deepEqual(commits(), [slow, good]);
  await until(() => countRunning(SLOW) === 0, "its end on the node");
  const back = await until(async () => {
    const { status, json } = await next.ask(`/api/rollouts/${id}/back`, {});
    return status === 202 ? (json as RolloutRecord) : undefined;
  }, "the nodes to be free");
  const over = await ended(next, back.id);
  assert.deepEqual([over.state, over.reason, commits()], ["succeeded", undefined, [good, good]]);
  assert.equal(countRunning(SERVICE), 2);
  await next.stop();
});
