// Browsers' load on a console during a cluster's reports: a page of users, and snapshots to many sockets.
import { type Json, type Program } from "#bench/child.ts";
import { type Lab, numberOf } from "#bench/lab.ts";
import { median, ROUNDS } from "#bench/measure.ts";
import type { Row } from "#bench/row.ts";

const NODES = 50;
const USERS = 10_000;
const CONNECTIONS = 64;
const SOCKETS = 1_000;
const SECONDS = 2;
const WARM_ROUNDS = 5;
const PATH = "/api/users?sort=usage";

/** The rows. They run without the limits of rate and sockets per address, since all load comes from one. */
export function consoleLiveRows(): readonly Row[] {
  /** 99th percentiles of the event loop's delay, gathered while the rows above are measured. */
  const delays: number[] = [];
  return [
    {
      name: "a page of 100 of 10,000 users, 64 connections (rate limit raised)",
      against: "Fastify answering the same bytes from memory",
      atLeast: 0.5,
      rate: "answers/s",
      async sides(lab) {
        const { program, port, token } = await consoleOf(lab);
        const headers = { authorization: `Bearer ${token}` };
        const page = await (await fetch(`http://127.0.0.1:${port}${PATH}`, { headers })).text();
        const plain = lab.program("plain-fastify");
        const plainPort = numberOf(await plain.run("serve", page));
        const loader = lab.program("http-load");
        const load = async (to: number, path: string, more: Json): Promise<number> =>
          numberOf(
            await loader.run("load", {
              host: "127.0.0.1",
              port: to,
              path,
              headers: more,
              connections: CONNECTIONS,
              seconds: SECONDS,
            }),
          );
        // Our side runs through more code, and takes longer until all of it is compiled.
        for (let warm = 0; warm < WARM_ROUNDS; warm += 1) {
          await load(port, PATH, headers);
          await load(plainPort, "/", {});
        }
        return {
          ours: () => watched(program, delays, () => load(port, PATH, headers)),
          theirs: () => load(plainPort, "/", {}),
        };
      },
    },
    {
      name: "snapshot of 50 nodes to 1,000 sockets: until the last has it (sockets per address raised)",
      unit: "ms",
      below: 1_000,
      async measure(lab) {
        const { program, port } = await consoleOf(lab);
        const url = `ws://127.0.0.1:${port}/ws/cluster`;
        const alone = lab.program("socket-crowd");
        await alone.run("open", { url, count: 1 });
        const oneMs = await broadcastTo(program, alone);
        await alone.close();
        const crowd = lab.program("socket-crowd");
        await crowd.run("open", { url, count: SOCKETS });
        const rounds: number[] = [];
        await broadcastTo(program, crowd);
        for (let round = 0; round < ROUNDS; round += 1) {
          rounds.push(await watched(program, delays, () => broadcastTo(program, crowd)));
        }
        await crowd.close();
        return { value: median(rounds), detail: `one socket ${oneMs.toFixed(1)} ms; ${ROUNDS} times` };
      },
    },
    {
      name: "event-loop delay of the console in the two rows above, p99",
      unit: "ms",
      below: 20,
      async measure() {
        return { value: Math.max(...delays), detail: `the worst of ${delays.length} measured stretches` };
      },
    },
  ];
}

function consoleOf(lab: Lab): Promise<{ program: Program; port: number; token: string }> {
  return lab.once("console", async () => {
    const program = lab.program("console-parts");
    const served = await program.run("serve", { nodes: NODES, usersPerNode: USERS / NODES });
    return { program, ...(served as { port: number; token: string }) };
  });
}

async function watched<T>(program: Program, delays: number[], work: () => Promise<T>): Promise<T> {
  await program.run("watchDelay");
  const result = await work();
  delays.push(numberOf(await program.run("delayP99")));
  return result;
}

/** Milliseconds from the broadcast until the last socket has it. */
async function broadcastTo(program: Program, crowd: Program): Promise<number> {
  await crowd.run("expect");
  const arrived = crowd.run("lastHadIt");
  const sentAtMs = numberOf(await program.run("broadcast"));
  return numberOf(await arrived) - sentAtMs;
}
