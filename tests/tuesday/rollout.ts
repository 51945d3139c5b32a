// A rollout that stops half way, by an operator or a failing node, and then continues or goes back.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRunning } from "#e2e/action-console.ts";
import { GROVE_LAUNCHER } from "#testing/grove-program.ts";
import { type SshServer, SshServers, withoutSshServer } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";
import type { Job } from "./job.ts";
import type { Site } from "./site.ts";

const skip = withoutSshServer();
/** The nodes in the order of the rollout. */
const IDS = ["n1", "n2", "n5"] as const;
/** Files beside a node's working copy delay a build or make it fail. */
const MAKEFILE = "build:\n\ttest ! -e ../full\n\ttest ! -e ../slow || sleep 1000\n";

let servers: SshServers | undefined;
const shells = new Map<string, SshServer>();

/** A machine's folder with the working copy and the files of its services. */
const homeOf = (id: string): string => shells.get(id)?.home ?? assert.fail(id);
const pidFile = (id: string): string => join(homeOf(id), "fileserver.pid");
const heads = (): string[] => IDS.map((id) => git(join(homeOf(id), "grove"), "rev-parse", "HEAD"));

/** Makes the console's SSH key; returns its flags. */
export async function rolloutKey(site: Site, ends: (() => Promise<void>)[]): Promise<readonly string[]> {
  if (skip !== false) return [];
  const made = new SshServers();
  servers = made;
  ends.push(
    () => made.stop(),
    () => endServices("SIGKILL"),
  );
  await mkdir(join(site.folder, "origin"));
  return ["-ssh_key", made.keyFile];
}

function git(cwd: string, ...words: readonly string[]): string {
  const who = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
  return execFileSync("git", [...who, ...words], { cwd, encoding: "utf8", stdio: "pipe" }).trim();
}

async function commit(site: Site, line: string): Promise<string> {
  const origin = join(site.folder, "origin");
  await writeFile(join(origin, "Makefile"), `${MAKEFILE}# ${line}\n`);
  git(origin, "add", ".");
  git(origin, "commit", "-q", "-m", line);
  return git(origin, "rev-parse", "HEAD");
}

/** A sshd and a working copy for each node; the nodes keep running as started by hand. */
async function enrolAll(site: Site): Promise<void> {
  const origin = join(site.folder, "origin");
  for (const id of IDS) {
    const node = site.node(id);
    // A record may not hold the hash of a password.
    const { HOME: _home, ADMIN_PASSWORD_HASH: _hash, ...env } = node.env;
    const shell = (await servers?.start()) ?? assert.fail("no sshd");
    shells.set(id, shell);
    git(shell.home, "clone", "-q", origin, "grove");
    await writeFile(pidFile(id), `${node.program.child.pid}\n`);
    const files = { pid_file: pidFile(id), log_file: "fileserver.log" };
    const service = { argv: [GROVE_LAUNCHER, ...node.words], env, ...files };
    const services = join(shell.home, "services.json");
    await writeFile(services, JSON.stringify({ fileserver: service }));
    const words = ["-meta", site.store, "-host_key", shell.hostKey, "-repository", "grove"];
    const to = `${shell.user}@${shell.host}:${shell.port}`;
    await site.operator("node", "add", id, to, ...words, "-services", services);
  }
}

/** Ends the services that a rollout has started, and restores the nodes. */
async function endServices(signal: NodeJS.Signals): Promise<void> {
  for (const id of shells.keys()) {
    const pid = existsSync(pidFile(id)) ? Number(readFileSync(pidFile(id), "utf8").split("\n")[0]) : 0;
    if (pid === 0 || !isRunning(pid)) continue;
    process.kill(pid, signal);
    await until(() => !isRunning(pid), `the end of ${id}`);
  }
}

function begin(site: Site): Promise<RolloutRecord> {
  return site.ask<RolloutRecord>("/api/rollouts", "POST", {
    nodes: IDS,
    branch: "main",
    restart_mode: "binary",
    target_service: "fileserver",
    gates: { observe_seconds: 0 },
  });
}

const look = (site: Site, id: string): Promise<RolloutRecord> => site.ask(`/api/rollouts/${id}`);

function ended(site: Site, { id }: RolloutRecord): Promise<RolloutRecord> {
  const read = async (): Promise<RolloutRecord | undefined> => {
    const record = await look(site, id);
    return record.state === "running" ? undefined : record;
  };
  return until(read, `the end of ${id}`);
}

type Words = Readonly<Record<string, (of: RolloutRecord) => string>>;

/** The page's text about it, from web/words, which are not type-checked with these sources. */
async function pageOf(record: RolloutRecord): Promise<string> {
  const folder = new URL("../../web/words/", import.meta.url);
  const { progressText } = (await import(new URL("rollout.ts", folder).href)) as Words;
  const { standText } = (await import(new URL("rollout-end.ts", folder).href)) as Words;
  return `${progressText?.(record)}. ${standText?.(record)}`;
}

/** An operator stops it while the second node builds. */
export const rolloutStopped: Job = {
  title:
    "a rollout that an operator stops half way says which nodes have it, how it goes on and how it goes back; one step takes it back",
  skip,
  async run(site) {
    git(join(site.folder, "origin"), "init", "-q", "-b", "main");
    const before = await commit(site, "before");
    await site.addNode("n5", join(site.folder, "n5"), ["-reserve", "1GiB"]);
    await enrolAll(site);
    const next = await commit(site, "next");
    await writeFile(join(homeOf("n2"), "slow"), "");
    const { id } = await begin(site);
    const builds = async (): Promise<true | undefined> => {
      const { state, nodes, reason } = await look(site, id);
      assert.equal(state, "running", reason ?? state);
      return nodes.some((node) => node.node_id === "n2" && node.step === "build") ? true : undefined;
    };
    await until(builds, "the build on n2");
    await site.ask(`/api/rollouts/${id}/cancel`, "POST");
    const stopped = await ended(site, { id } as RolloutRecord);
    assert.equal(stopped.state, "cancelled");
    assert.equal(
      await pageOf(stopped),
      "1 of 3 nodes done. It stopped: an operator ended it. When it ended, it was done on n1, it stood at the step “build” on n2 and " +
        "nothing had changed on n5. Nothing of it goes on by itself. To go on, begin the same rollout again; to undo it, go back on n1 and n2.",
    );
    assert.deepEqual(heads(), [next, next, before]);
    await site.person("alice").ok("ls");
    await rm(join(homeOf("n2"), "slow"));
    const back = await ended(site, await site.ask(`/api/rollouts/${id}/back`, "POST", {}));
    assert.deepEqual([back.state, back.reason], ["succeeded", undefined]);
    assert.deepEqual(heads(), [before, before, before]);
    assert.doesNotMatch(await pageOf(await look(site, id)), /go back/, "it has gone back");
  },
};

/** It stops where a node fails; the same command again continues. */
export const rolloutFails: Job = {
  title:
    "a rollout that fails on a node stops there, says at which step, is an alert, and goes on when it is begun again",
  skip,
  async run(site) {
    const next = git(join(site.folder, "origin"), "rev-parse", "main");
    await writeFile(join(homeOf("n2"), "full"), "");
    const failed = await ended(site, await begin(site));
    assert.equal(failed.state, "failed");
    const said = await pageOf(failed);
    assert.match(said, /^1 of 3 nodes done\. It stopped: n2, build: exit code 2/);
    assert.match(said, /it was done on n1, it stood at the step “build” on n2 and nothing had changed on n5/);
    const alert = await site.alert("action_failed:n2:build:build");
    assert.equal(alert.severity, "warning");
    await site.person("bob").ok("ls");
    await rm(join(homeOf("n2"), "full"));
    const again = await ended(site, await begin(site));
    assert.deepEqual([again.state, again.reason], ["succeeded", undefined]);
    assert.deepEqual(heads(), [next, next, next]);
    await site.noAlert(alert.key);
    await endServices("SIGTERM");
    await Promise.all(IDS.map((id) => site.node(id).start(/"event":"registered"/)));
  },
};
