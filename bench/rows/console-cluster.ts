// The console as operators start it, over a thousand metrics-only nodes: its cost and its delay.
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "#base/clock.ts";
import { POLL_INTERVAL_MS } from "#base/limits.ts";
import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import { profileFlags, type Service } from "#bench/child.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import { GROVE } from "#bench/node.ts";
import { peakMemoryMb, processorMsOf } from "#bench/processor-time.ts";
import type { Row } from "#bench/row.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { registration } from "#metaserver/directory/store-under-test.fixture.ts";
import { freeGrpcPorts, freePort } from "#testing/free-ports.ts";

const MANY = { nodes: 1_000, users: 100 };
const SOME = { nodes: 50, users: 20 };
const WARM_UP_ROUNDS = 3;
const MEASURED_ROUNDS = 6;
const CONNECTIONS = 64;
const WARM_LOADS = 5;
const SECONDS = 2;
const RATE = "1000000";

/** The rows. */
export function consoleClusterRows(): readonly Row[] {
  return [
    {
      name: "1,000 nodes with 100 users each, polled every 5 s: share of one core",
      unit: "%",
      below: 25,
      async measure(lab) {
        const { processorShare, rounds } = await watchMany(lab);
        return { value: processorShare * 100, detail: `over ${rounds} rounds` };
      },
    },
    {
      name: "1,000 nodes: resident memory of the console",
      unit: "MB",
      below: 400,
      async measure(lab) {
        const { memoryMb } = await watchMany(lab);
        return { value: memoryMb, detail: "the largest since its start" };
      },
    },
    {
      name: "1,000 nodes: polls that were missed or not answered",
      unit: "polls",
      below: 0,
      async measure(lab) {
        const { missed, answered } = await watchMany(lab);
        return { value: missed, detail: `${answered} were answered` };
      },
    },
    {
      name: "1,000 nodes: event-loop delay of the console, p99",
      unit: "ms",
      below: 20,
      async measure(lab) {
        const { delayMs } = await watchMany(lab);
        return { value: delayMs, detail: "its start included" };
      },
    },
    {
      name: "GET /api/cluster for 50 nodes, 64 connections (rate limit raised)",
      against: "Fastify answering the same bytes from memory",
      atLeast: 0.7,
      rate: "answers/s",
      async sides(lab) {
        const { port } = await startConsole(lab, SOME);
        await wait(POLL_INTERVAL_MS);
        const body = await (await fetch(`http://127.0.0.1:${port}/api/cluster`)).text();
        const plain = lab.program("plain-fastify");
        const plainPort = numberOf(await plain.run("serve", body));
        const loader = lab.program("http-load");
        const load = async (to: number, path: string): Promise<number> =>
          numberOf(
            await loader.run("load", {
              host: "127.0.0.1",
              port: to,
              path,
              headers: {},
              connections: CONNECTIONS,
              seconds: SECONDS,
            }),
          );
        // Our side runs through more code, and takes longer until all of it is compiled.
        for (let warm = 0; warm < WARM_LOADS; warm += 1) {
          await load(port, "/api/cluster");
          await load(plainPort, "/");
        }
        return { ours: () => load(port, "/api/cluster"), theirs: () => load(plainPort, "/") };
      },
    },
  ];
}

interface ManyWatched {
  readonly processorShare: number;
  readonly memoryMb: number;
  readonly missed: number;
  readonly answered: number;
  readonly delayMs: number;
  readonly rounds: number;
}

/** Watches a thousand nodes for half a minute, once for all rows about it. */
function watchMany(lab: Lab): Promise<ManyWatched> {
  return lab.once("console with many nodes", async () => {
    const { port, service } = await startConsole(lab, MANY);
    await wait(WARM_UP_ROUNDS * POLL_INTERVAL_MS);
    const before = await figuresOf(port);
    const [beforeMs, startMs] = [processorMsOf(service.pid), performance.now()];
    await wait(MEASURED_ROUNDS * POLL_INTERVAL_MS);
    const passedMs = performance.now() - startMs;
    const processorShare = (processorMsOf(service.pid) - beforeMs) / passedMs;
    const after = await figuresOf(port);
    const memoryMb = peakMemoryMb(service.pid);
    await service.close();
    const grown = (name: string): number => (after[name] ?? 0) - (before[name] ?? 0);
    return {
      processorShare,
      memoryMb,
      missed: grown("polls_missed_total") + grown("polls_failed_total"),
      answered: grown("polls_answered_total"),
      delayMs: (after["event_loop_delay_p99_seconds"] ?? Number.NaN) * 1_000,
      rounds: MEASURED_ROUNDS,
    };
  });
}

async function figuresOf(port: number): Promise<Readonly<Record<string, number>>> {
  return (await (await fetch(`http://127.0.0.1:${port}/metrics`)).json()) as Record<string, number>;
}

/** Starts `grove admin` on a metadata store that lists fake nodes, one for each address of 127.1.0.0/16. */
export async function startConsole(
  lab: Lab,
  { nodes, users }: { readonly nodes: number; readonly users: number },
): Promise<{ port: number; service: Service }> {
  const [nodePort = 0] = await freeGrpcPorts(1);
  const fakes = lab.program("fake-cluster");
  await fakes.run("serve", { port: nodePort - METRICS_PORT_OFFSET, users });
  const folder = await lab.folder("memory");
  const store = `sqlite:${join(folder, "metadata.db")}`;
  const directory = await openDirectory(store, { clock: systemClock });
  for (let index = 0; index < nodes; index += 1) {
    await directory.register(
      registration(`node-${index}`, {
        address: `127.1.${Math.floor(index / 256)}.${index % 256}:${nodePort}`,
        roots: Array.from({ length: users }, (_, user) => ({
          owner: `user-${index}-${user}@people.example`,
          rootId: `root-${index}-${user}`,
          version: 1n,
          grants: [],
        })),
      }),
    );
  }
  await directory.close();
  const port = await freePort();
  const profile = profileFlags("admin").join(" ");
  const flags = ["-data", join(folder, "admin"), "-meta", store, "-listen", `127.0.0.1:${port}`];
  const service = await lab.service(
    [GROVE, "admin", ...flags, "-allow_nodes", "127.0.0.0/8", "-rate_visitor", RATE, "-log_level", "error"],
    {
      env: profile === "" ? {} : { NODE_OPTIONS: profile },
      isQuiet: true,
      isUp: async () => {
        const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);
        return answer?.ok === true;
      },
    },
  );
  return { port, service };
}
