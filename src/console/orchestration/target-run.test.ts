// Tests one action on one node, against real sshds.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import type { SshServer, SshServers } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { RemoteStep } from "./remote-step.ts";
import { SshConnections } from "./ssh-command.ts";
import { sshOfFile } from "./ssh-site.fixture.ts";
import type { SshTarget } from "./ssh-target.ts";
import { runOnTarget, type TargetResult, type TargetRunOptions } from "./target-run.ts";
import { type TargetDeps, traceOnTarget } from "./target-trace.ts";

let servers: SshServers;
let server: SshServer;
let connections: SshConnections;
const skip = sshOfFile((site) => {
  ({ servers, server, connections } = site);
});
const TIMEOUT_MS = 60_000;

function target(of: SshServer = server, id = "n1"): SshTarget {
  return { id, host: of.host, port: of.port, user: of.user, hostKey: of.hostKey };
}

function deps(more: Partial<TargetDeps> = {}): TargetDeps {
  return { connections, clock: systemClock, secrets: () => [], ...more };
}

interface Heard extends TargetResult {
  readonly stdout: string;
  readonly stderr: string;
}

async function run(
  steps: readonly RemoteStep[],
  options: Partial<TargetRunOptions> = {},
  to: { readonly target?: SshTarget; readonly deps?: TargetDeps } = {},
): Promise<Heard> {
  const heard = { stdout: "", stderr: "" };
  const result = await runOnTarget(to.deps ?? deps(), to.target ?? target(), steps, {
    actionId: ulid(systemClock, systemRandom),
    timeoutMs: TIMEOUT_MS,
    ...options,
    onOutput: (stream, bytes) => {
      heard[stream] += bytes.toString();
      return options.onOutput?.(stream, bytes);
    },
  });
  return { ...result, ...heard };
}

/** Waits until the node has no unacknowledged action; the last acknowledgement may be on its way. */
async function assertForgotten(): Promise<void> {
  const folder = join(server.home, ".grove-actions");
  const unheard = (): string[] =>
    readdirSync(folder).filter((name) => readFileSync(join(folder, name), "utf8") !== "heard\n");
  await until(() => unheard().length === 0);
}

test("two streams, an exit code, the steps up to the first that fails, and nothing left on the node (D7)", {
  skip,
}, async () => {
  const result = await run([
    { argv: ["sh", "-c", "echo out; echo error >&2"] },
    { argv: ["sh", "-c", "printf 'no end of line'; exit 7"] },
    { argv: ["echo", "never"] },
  ]);
  assert.equal(result.state, "failed");
  assert.equal(result.exitCode, 7);
  assert.equal(result.failedStep, 1);
  assert.equal(result.stdout, "out\nno end of line");
  assert.equal(result.stderr, "error\n");
  await assertForgotten();
});

test("arguments arrive as they are, in a clean environment and a folder of the home; facts are captured, optional steps may fail", {
  skip,
}, async () => {
  const hostile = [
    "'; touch hacked; '",
    "$(touch hacked)",
    "`touch hacked`",
    "a\nb",
    "-n",
    "",
    "*",
    "\\",
    "ü\u001e",
  ];
  const result = await run([
    { argv: ["mkdir", "-p", "it's a folder"] },
    { argv: ["pwd"], cwd: "it's a folder", capture: "folder" },
    { argv: ["false"], isOptional: true },
    { argv: ["printf", "[%s]", ...hostile] },
    { argv: ["env"], env: { X: "a'b $HOME" }, capture: "env" },
  ]);
  assert.equal(result.state, "succeeded");
  assert.equal(result.exitCode, 0);
  assert.equal(result.stdout, hostile.map((word) => `[${word}]`).join(""));
  assert.equal(result.captured["folder"], join(server.home, "it's a folder"));
  const names = (result.captured["env"] ?? "").split("\n").map((line) => line.split("=")[0] ?? "");
  assert.deepEqual(names.toSorted(), [
    "GROVE_ACTION",
    "HOME",
    "LANG",
    "LOGNAME",
    "OLDPWD",
    "PATH",
    "PWD",
    "USER",
    "X",
  ]);
  assert.equal(existsSync(join(server.home, "hacked")), false);
});

test("secrets are masked also where they come in pieces; 255 of a program is its own (D7)", {
  skip,
}, async () => {
  const argv = ["sh", "-c", "printf 'a hun'; sleep 0.2; printf 'ter2!b'; exit 255"];
  const result = await run([{ argv }], {}, { deps: deps({ secrets: () => ["hunter2!", "ab"] }) });
  assert.equal(result.stdout, "a [redacted]b");
  assert.equal(result.exitCode, 255);
  assert.equal(result.reason, undefined);
});

test("cancelling ends the whole group, those that left it included, and says so only when none is left (D7)", {
  skip,
}, async () => {
  const stop = new AbortController();
  const mark = `1000.${process.pid}`;
  const line = `sleep ${mark} & setsid sleep ${mark} & sh -c 'trap "" TERM; echo ready; sleep ${mark}; sleep ${mark}'`;
  const result = await run([{ argv: ["sh", "-c", line] }], {
    signal: stop.signal,
    onOutput: () => stop.abort(),
  });
  assert.equal(result.state, "cancelled");
  assert.deepEqual(processesWith(mark), []);
  await assertForgotten();
});

test("the time limit ends it, and keeps what it had said", { skip }, async () => {
  const result = await run([{ argv: ["sh", "-c", "echo said; sleep 1000"] }], { timeoutMs: 1_500 });
  assert.equal(result.state, "timed_out");
  assert.equal(result.stdout, "said\n");
  assert.equal(result.signal, "SIGTERM");
});

test("what a finished program left in the background does not hold its action", { skip }, async () => {
  const result = await run([{ argv: ["sh", "-c", "sleep 30 & echo $!"] }]);
  assert.equal(result.state, "succeeded");
  process.kill(Number(result.stdout));
});

test("a lost connection is found again: the exit code is the true one (E-05)", { skip }, async () => {
  const other = await servers.start();
  const result = await run(
    [{ argv: ["sh", "-c", "echo begun; sleep 1; exit 3"] }],
    {
      onOutput: async () => {
        await other.stop({ cut: true });
        await other.start();
      },
    },
    { target: target(other) },
  );
  assert.equal(result.exitCode, 3);
  assert.equal(result.state, "failed");
  assert.equal(result.reason, "CONNECTION_LOST");
  assert.equal(result.isOutputCut, true);
});

test("a changed host key is refused with both fingerprints, and nothing is sent (E-01)", {
  skip,
}, async () => {
  const pinned = target(server, "n2");
  const other = await servers.start();
  const result = await run([{ argv: ["touch", "sent"] }], {}, { target: { ...pinned, port: other.port } });
  assert.equal(result.state, "unreachable");
  assert.equal(result.reason, "HOST_KEY_CHANGED");
  assert.match(result.hostKeys?.pinned ?? "", /^SHA256:/);
  assert.match(result.hostKeys?.shown ?? "", /^SHA256:/);
  assert.notEqual(result.hostKeys?.pinned, result.hostKeys?.shown);
  assert.equal(existsSync(join(other.home, "sent")), false);
});

test("a key that others may read, a key that is not let in, a node that is not there: each is told apart (E-07)", {
  skip,
}, async () => {
  const keyFile = join(servers.folder, "loose");
  copyFileSync(servers.keyFile, keyFile);
  chmodSync(keyFile, 0o644);
  const loose = new SshConnections({ clock: systemClock, log: silentLogger, keyFile });
  const refused = await run([{ argv: ["true"] }], {}, { deps: deps({ connections: loose }) });
  assert.deepEqual([refused.state, refused.reason], ["unreachable", "KEY_FILE_UNSAFE"]);
  await loose.close();
  const nobody = await run([{ argv: ["true"] }], {}, { target: { ...target(), user: "nobody" } });
  assert.deepEqual([nobody.state, nobody.reason], ["unreachable", "KEY_REFUSED"]);
  const nowhere = await run([{ argv: ["true"] }], {}, { target: { ...target(), port: 1 } });
  assert.deepEqual([nowhere.state, nowhere.reason], ["unreachable", "CONNECT_FAILED"]);
});

test("a reboot has happened when the boot id is another and the node is healthy (D7)", { skip }, async () => {
  const bootIdFile = join(servers.folder, "boot_id");
  writeFileSync(bootIdFile, "first\n");
  let asked = 0;
  const result = await run(
    [{ argv: ["sh", "-c", `(sleep 1; echo second >${bootIdFile}) >/dev/null 2>&1 &`] }],
    { expectsReboot: { isHealthy: async () => ++asked > 1 } },
    { deps: deps({ bootIdFile }) },
  );
  assert.deepEqual([result.state, result.bootIdBefore, result.bootIdAfter], ["succeeded", "first", "second"]);
});

test("a binary is restarted: the old process ends, the new one outlives the action; one that dies at once is a failure", {
  skip,
}, async () => {
  const step: RemoteStep = { kind: "daemon", argv: ["sleep", "777"], pidFile: "run.pid", logFile: "run.log" };
  const pid = (): number => Number(readFileSync(join(server.home, "run.pid"), "utf8").split("\n")[0]);
  assert.equal((await run([step])).state, "succeeded");
  const first = pid();
  assert.equal((await run([step])).state, "succeeded");
  const second = pid();
  assert.equal(isAlive(first), false);
  assert.equal(isAlive(second), true);
  const dead = await run([{ ...step, argv: ["sh", "-c", "echo why; exit 4"] }]);
  assert.deepEqual([dead.state, dead.exitCode], ["failed", 4]);
  assert.match(readFileSync(join(server.home, "run.log"), "utf8"), /why/);
  assert.equal(isAlive(second), false);
});

test("a process that was started by hand is taken over where pid file, program, command and data folder agree; else it is refused with what differs", {
  skip,
}, async () => {
  const home = server.home;
  for (const folder of ["app/src/bin", "data", "other"]) mkdirSync(join(home, folder), { recursive: true });
  // Like Grove's launcher: a script that execs another program with the entry file among its words.
  writeFileSync(join(home, "app/grove"), '#!/bin/sh\nexec sh "${0%/*}/src/bin/grove.ts" "$@"\n', {
    mode: 0o755,
  });
  writeFileSync(join(home, "app/src/bin/grove.ts"), "while :; do sleep 1; done\n");
  const pidFile = join(home, "hand.pid");
  const byHand = (program: string, ...words: string[]): number => {
    const child = spawn(program, words, { cwd: join(home, "app"), detached: true, stdio: "ignore" });
    child.unref();
    writeFileSync(pidFile, `${child.pid}\n`);
    const pid = child.pid ?? 0;
    byHands.push(pid);
    return pid;
  };
  const byHands: number[] = [];
  const step: RemoteStep = {
    kind: "daemon",
    argv: [join(home, "app/grove"), "fileserver", "-data", join(home, "data")],
    cwd: join(home, "app"),
    pidFile,
  };
  const script = join(home, "app/src/bin/grove.ts");
  const started = async (pid: number): Promise<void> => {
    // /proc shows its words after the exec.
    while (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("src/bin/grove.ts")) await sleep(10);
  };
  try {
    for (const [words, why] of [
      [["metaserver", "-data", join(home, "data")], /it was not started as fileserver/],
      [["fileserver", "-data", join(home, "other")], /its data folder is .*\/other and not .*\/data/],
      [["fileserver"], /its data folder is .*\/app and not/],
    ] as const) {
      const pid = byHand("sh", script, ...words);
      const refused = await run([step]);
      assert.equal(refused.state, "failed");
      assert.match(refused.stderr, /was not started from here, and /);
      assert.match(refused.stderr, why);
      assert.equal(isAlive(pid), true, "nothing was done to it");
    }
    const stranger = byHand("sleep", "1000");
    assert.match((await run([step])).stderr, /it runs another program, .*sleep/);
    assert.equal(isAlive(stranger), true);
    const ours = byHand("./grove", "fileserver", "--data=../data");
    await started(ours);
    const taken = await run([step]);
    assert.equal(taken.state, "succeeded", taken.stderr);
    assert.match(taken.stdout, new RegExp(`process ${ours} .* was started by hand; from now on`));
    assert.equal(isAlive(ours), false);
    const next = Number(readFileSync(pidFile, "utf8").split("\n")[0]);
    byHands.push(next);
    assert.equal(isAlive(next), true);
    assert.equal((await run([step])).state, "succeeded", "from then on as ever");
    byHands.push(Number(readFileSync(pidFile, "utf8").split("\n")[0]));
  } finally {
    for (const pid of byHands) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  }
});

test("from outside: an action is seen running, ended, and can never begin after its end was asked for", {
  skip,
}, async () => {
  const stop = new AbortController();
  const actionId = ulid(systemClock, systemRandom);
  const { promise: hasBegun, resolve } = Promise.withResolvers<void>();
  const running = run([{ argv: ["sh", "-c", "echo x; sleep 1000"] }], {
    actionId,
    signal: stop.signal,
    onOutput: () => resolve(),
  });
  await hasBegun;
  assert.equal((await traceOnTarget(deps(), target(), { actionId, mode: "look" })).state, "running");
  await traceOnTarget(deps(), target(), { actionId, mode: "end" });
  assert.equal((await running).exitCode, 143);
  const never = ulid(systemClock, systemRandom);
  assert.equal((await traceOnTarget(deps(), target(), { actionId: never, mode: "end" })).state, "none");
  const late = await run([{ argv: ["touch", "late"] }], { actionId: never });
  assert.deepEqual([late.state, late.reason], ["failed", "NOT_STARTED"]);
  assert.equal(existsSync(join(server.home, "late")), false);
  assert.equal((await traceOnTarget(deps(), target(), { actionId: never, mode: "look" })).state, "none");
});

test("500 words of any characters reach a program as they are, and none is ever run (E-02)", {
  skip,
}, async () => {
  const unit = fc.constantFrom(
    "'",
    '"',
    "$(touch hacked)",
    "`",
    "\\",
    "\n",
    ";",
    "|",
    "&",
    "*",
    " ",
    "-",
    "~",
    "ü",
    "\u001e",
    "x",
  );
  const words = fc.sample(fc.string({ unit, maxLength: 30 }), 500);
  const result = await run([{ argv: ["printf", "%s\\0", ...words] }]);
  assert.equal(result.stdout, words.map((word) => `${word}\0`).join(""));
  assert.equal(existsSync(join(server.home, "hacked")), false);
});

/** A zombie is not alive. */
function isAlive(pid: number): boolean {
  const path = `/proc/${pid}/stat`;
  return existsSync(path) && !/\) Z /.test(readFileSync(path, "utf8"));
}

function processesWith(argument: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return (
        /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(`sleep\0${argument}\0`)
      );
    } catch {
      return false;
    }
  });
}
