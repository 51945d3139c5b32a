// Actions as the console runs them, on fifty addresses of one sshd, and bare multiplexed calls of ssh.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { peakMemoryMb } from "#bench/processor-time.ts";
import { serveTasks } from "#bench/tasks.ts";
import { ActionEngine } from "#console/orchestration/action-engine.ts";
import { ActionHistory } from "#console/orchestration/action-history.ts";
import { NodeLocks } from "#console/orchestration/node-locks.ts";
import { OutputStore } from "#console/orchestration/output-store.ts";
import { SshConnections } from "#console/orchestration/ssh-command.ts";
import { runOnTarget } from "#console/orchestration/target-run.ts";
import { SshServers } from "#testing/ssh-server.ts";
import { actionRequest } from "#wire/webapi/action-request.ts";

const PARALLEL = 10;
const OPERATOR = { session: "01234567", ip: "127.0.0.1" };

const folder = mkdtempSync(join(tmpdir(), "grove-bench-actions-"));
const servers = new SshServers();
const connections = new SshConnections({ clock: systemClock, log: silentLogger, keyFile: servers.keyFile });
const delay = monitorEventLoopDelay({ resolution: 1 });
const masters: ReturnType<typeof spawn>[] = [];
let engine: ActionEngine | undefined;
let nodes: readonly SshNode[] = [];

async function serve(targets: number): Promise<null> {
  const server = await servers.start({ listen: "0.0.0.0", settings: ["MaxSessions 100"] });
  const { port, user, hostKey, home } = server;
  nodes = Array.from({ length: targets }, (_, at) => ({
    id: `n${at + 1}`,
    host: `127.0.1.${at + 1}`,
    port,
    user,
    hostKey,
    repository: home,
    services: {},
  }));
  writeFileSync(join(folder, "hosts"), nodes.map(({ host }) => `[${host}]:${port} ${hostKey}\n`).join(""));
  const { history } = await ActionHistory.open({ folder, clock: systemClock, log: silentLogger });
  const deps = { connections, clock: systemClock, secrets: () => [] };
  engine = new ActionEngine({
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
    history,
    outputs: await OutputStore.open(folder),
    locks: new NodeLocks(systemClock),
    nodes: () => Promise.resolve(nodes),
    nameOf: (id) => id,
    secrets: () => [],
    allowsCustom: true,
    runner: {
      run: (node, steps, options) => runOnTarget(deps, node, steps, options),
      settle: () => Promise.resolve({ state: "none", bootId: "" }),
      isHealthy: () => Promise.resolve(true),
    },
    openMaintenance: () => () => undefined,
    audit: () => Promise.resolve(),
    events: {
      onState: () => undefined,
      onOutput: () => undefined,
      onEnd: () => undefined,
      onDone: () => undefined,
    },
  });
  for (const node of nodes)
    masters.push(spawn("ssh", [...bareOptions(node), "-M", "-N", ...where(node)], { stdio: "ignore" }));
  for (const node of nodes) while ((await bare(node)) !== 0) await sleep(100);
  return null;
}

/** Only the options that ssh needs to find the open connection. */
function bareOptions(node: SshNode): string[] {
  const files = [`ControlPath=${join(folder, node.id)}`, `UserKnownHostsFile=${join(folder, "hosts")}`];
  return [
    "-F",
    "none",
    "-i",
    servers.keyFile,
    "-o",
    "BatchMode=yes",
    ...files.flatMap((file) => ["-o", file]),
  ];
}

function where({ user, port, host }: SshNode): string[] {
  return ["-l", user, "-p", String(port), "--", host];
}

async function bare(node: SshNode): Promise<number | null> {
  const child = spawn("ssh", [...bareOptions(node), ...where(node), "true"], { stdio: "pipe" });
  child.stdout.resume();
  child.stderr.resume();
  child.stdin.end();
  const [code] = (await once(child, "close")) as [number | null];
  return code;
}

/** Targets per second with one call of ssh for each, ten at a time. */
async function bareCalls(): Promise<number> {
  const start = performance.now();
  const waiting = [...nodes];
  const worker = async (): Promise<void> => {
    for (let node = waiting.shift(); node !== undefined; node = waiting.shift()) {
      const code = await bare(node);
      if (code !== 0) throw new Error(`ssh ended with ${code}`);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return (nodes.length * 1_000) / (performance.now() - start);
}

async function act(command: string, ids: readonly string[], parallel: number): Promise<number> {
  if (engine === undefined) throw new Error("nothing is served yet");
  const start = performance.now();
  const strategy = { mode: "parallel", max_parallel: parallel } as const;
  const request = actionRequest.parse({
    action: "custom",
    nodes: ids,
    command,
    timeout_seconds: 600,
    strategy,
  });
  const { done } = await engine.submit(request, OPERATOR);
  const { state, targets } = await done;
  if (state !== "succeeded")
    throw new Error(`${state}: ${targets.find((target) => target.message)?.message}`);
  return performance.now() - start;
}

serveTasks(
  {
    serve: (input) => serve(Number(input)),
    bare: bareCalls,
    action: async () =>
      (nodes.length * 1_000) /
      (await act(
        "true",
        nodes.map(({ id }) => id),
        PARALLEL,
      )),
    // 100 MB of lines from one node: peak memory in MB, 99th percentile of the event loop's delay in ms.
    output: async () => {
      delay.reset();
      delay.enable();
      const ms = await act("seq 1000000000 1009090908", ["n1"], 1);
      delay.disable();
      return {
        memoryMb: peakMemoryMb(process.pid),
        delayMs: delay.percentile(99) / 1e6,
        seconds: ms / 1_000,
      };
    },
  },
  async () => {
    for (const master of masters) master.kill();
    await connections.close();
    await servers.stop();
    rmSync(folder, { recursive: true, force: true });
  },
);
