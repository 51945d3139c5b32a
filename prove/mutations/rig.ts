// Sends malformed requests of every kind to a FileServer, a MetaServer and a console that run as processes
// (F12: B-07 to B-10, B-13, W-13).
//
// Valid requests of every method and route are taken apart into fields, values and lines, changed, and put
// together again. Names, tokens, frames, headers and HTTP itself are changed as well, many requests at a time
// on several connections. Every answer must come, and be a refusal or a success: no INTERNAL or UNKNOWN, no
// 5xx, no end without a status. Beside them an honest client must be served all the time. At the end no
// server may have ended, counted an error of its own, or hold more memory or handles than half-way.
//
// It cannot see a wrong success (authorization and model do), and it does not mutate TLS.

import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import type { Campaign } from "#prove/campaign.ts";
import { footprintOf } from "#prove/grove-process.ts";
import type { Rig } from "#prove/rig.ts";
import { CLUSTER_PASSWORD, type SmallCluster, startSmallCluster } from "#prove/small-cluster.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { json, startProvider } from "#security/identity/provider.fixture.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { ConsoleDoor } from "./console-door.ts";
import { GrpcDoor, type GrpcDoorDeps } from "./grpc-door.ts";
import { HonestClient } from "./honest-client.ts";
import { GROWTH_MAX_MB, MemoryFloors, warmFromOf } from "./memory-floors.ts";
import { FILE_SERVER_CALLS, META_SERVER_CALLS } from "./recorded-calls.ts";

const USER = "fuzz@example.com";
/** Small, so that a sparse file is soon read to its end. */
const QUOTA_BYTES = 4n * 1_048_576n;
const FILE_DOORS = 4;
const META_DOORS = 2;
const AT_ONCE = 24;
/** Fewer than of others: its requests take several times as long to make and to answer. */
const CONSOLE_AT_ONCE = 12;
const MEMORY_MAX_MB = 400;
const HANDLES_MAX = 40;
/** Log lines of a crashing process. */
const FALL = /uncaught|unhandled|ERR_INTERNAL|out of memory|"level":"fatal"/i;

/** The rig. */
export const mutations: Rig = {
  name: "mutations",
  figure: "F12",
  unit: "inputs",
  proves: "no mutated request crashes a server, hangs, grows it, or is answered INTERNAL or 500",
  goal: 2_000_000,
  shortGoal: 1_500,
  plantedGoal: 2_500,
  async run(campaign) {
    const cluster = await startSmallCluster(await campaign.folder("memory"), {
      env: await startProviderOf(campaign),
      // In mock mode any caller may speak for a node, and a store that has lost roots waits for the nodes.
      hasSecondMetaServer: true,
    });
    campaign.atEnd(() => cluster.stop());
    const honest = new HonestClient(cluster.fileserver.address, cluster.console.address);
    campaign.atEnd(() => honest.close());
    await prepare(cluster);
    const doors = openDoors(campaign, cluster);
    campaign.atEnd(() => doors.forEach(({ door }) => door.close()));
    const floors = startWatching(campaign, cluster, honest);
    await Promise.all(
      doors.flatMap(({ door, atOnce, name }, index) =>
        Array.from({ length: atOnce }, async (_, lane) => {
          const random = campaign.random.fork(`${name} ${index} ${lane}`);
          while (campaign.shouldGoOn()) await door.attack(random);
        }),
      ),
    );
    await judgeServers(campaign, cluster, await floors);
  },
};

/**
 * Starts mock sign-in, and a provider that refuses every other token, so that no refusal comes from the
 * set-up.
 */
async function startProviderOf(campaign: Campaign): Promise<Readonly<Record<string, string>>> {
  const provider = await startProvider();
  campaign.atEnd(() => provider.stop());
  provider.answers.set("/tokeninfo", json({ error: "invalid_token" }, 400));
  return { SVC_AUTH_MOCK: "1", IDP_CLIENT_ID: "rig", IDP_TOKENINFO_URL: `${provider.origin}/tokeninfo` };
}

interface OpenDoor {
  readonly name: string;
  readonly door: { attack(random: Campaign["random"]): Promise<void>; close(): void };
  readonly atOnce: number;
}

function openDoors(campaign: Campaign, cluster: SmallCluster): OpenDoor[] {
  const onViolation = (text: string): void => campaign.violation(text);
  const sent = (mutation: string): void => {
    campaign.step();
    campaign.count(mutation);
  };
  const onSent = (mutation: string, code: number): void => {
    sent(mutation);
    if (code === 0) campaign.count("accepted all the same");
  };
  const grpc = (count: number, deps: Omit<GrpcDoorDeps, "onViolation" | "onSent">): OpenDoor[] =>
    Array.from({ length: count }, () => ({
      name: deps.address,
      door: new GrpcDoor({ ...deps, onViolation, onSent }),
      atOnce: AT_ONCE,
    }));
  return [
    ...grpc(FILE_DOORS, {
      address: cluster.fileserver.address,
      calls: FILE_SERVER_CALLS,
      signIn: () => signIn(cluster.fileserver.address),
    }),
    ...grpc(META_DOORS, {
      address: cluster.loneMetaserver.address,
      calls: META_SERVER_CALLS,
      signIn: () => Promise.resolve(`Bearer mock-jwt.${USER}`),
    }),
    {
      name: "console",
      door: new ConsoleDoor({
        address: cluster.console.address,
        password: CLUSTER_PASSWORD,
        onViolation,
        onSent: sent,
      }),
      atOnce: CONSOLE_AT_ONCE,
    },
  ];
}

async function signIn(address: string): Promise<string> {
  const channel = new GrpcChannel({ addresses: [address] });
  try {
    const metadata = { authorization: `Bearer mock-jwt.${USER}` };
    const { sessionToken } = await createClient(FileServer, channel).registerClient({}, { metadata });
    return `Bearer ${sessionToken}`;
  } finally {
    channel.close();
  }
}

/** Makes the files that recorded requests name, and a quota that keeps files small. */
async function prepare({ fileserver }: SmallCluster): Promise<void> {
  const channel = new GrpcChannel({ addresses: [fileserver.address] });
  const client = createClient(FileServer, channel);
  const metadata = { authorization: await signIn(fileserver.address) };
  await client.createDirectory({ path: "/docs" }, { metadata });
  await client.createDirectory({ path: "/docs/folder" }, { metadata });
  await client.createFile({ path: "/docs/file", data: Buffer.alloc(200, "x") }, { metadata });
  const admin = { "x-admin-password-hash": adminPasswordHash(CLUSTER_PASSWORD) };
  const { success, error } = await client.setQuota(
    { username: USER, quotaBytes: QUOTA_BYTES },
    { metadata: admin },
  );
  channel.close();
  if (!success) throw new Error(`the quota cannot be set: ${error}`);
}

/** Starts an honest client, and records the servers' memory and handles. */
async function startWatching(
  campaign: Campaign,
  cluster: SmallCluster,
  honest: HonestClient,
): Promise<MemoryFloors> {
  const floors = new MemoryFloors(campaign.goal, warmFromOf(campaign.goal));
  while (campaign.shouldGoOn()) {
    const trouble = await honest.isServed();
    if (trouble === undefined) campaign.count("honest calls");
    else campaign.violation(`an honest client was not served: ${trouble}`);
    for (const { name, process } of cluster.all) {
      if (!process.isRunning()) return floors;
      floors.note(campaign.done, name, footprintOf(process.pid).memoryMb);
    }
  }
  return floors;
}

async function judgeServers(campaign: Campaign, cluster: SmallCluster, floors: MemoryFloors): Promise<void> {
  for (const { name, process } of cluster.all) {
    const log = process.log();
    if (!process.isRunning()) {
      campaign.violation(`${name} has ended: ${log}`);
      continue;
    }
    if (FALL.test(log)) campaign.violation(`${name} says: ${log}`);
    const { memoryMb, handles } = footprintOf(process.pid);
    campaign.figure(`${name} MB`, Math.round(memoryMb));
    const growthMb = Math.round(floors.growthMb(name));
    campaign.figure(`${name} has grown by MB`, growthMb);
    if (growthMb > GROWTH_MAX_MB || memoryMb > MEMORY_MAX_MB)
      campaign.violation(`${name} has grown by ${growthMb} MB, and holds ${Math.round(memoryMb)} MB`);
    const sockets = handles.length - HANDLES_MAX - FILE_DOORS * AT_ONCE;
    if (sockets > 0) campaign.violation(`${name} holds ${handles.length} handles`);
  }
  if (!cluster.fileserver.process.isRunning()) return;
  const port = Number(cluster.fileserver.address.split(":")[1]) - METRICS_PORT_OFFSET;
  const metrics = (await (await fetch(`http://127.0.0.1:${port}/metrics`)).json()) as Record<string, number>;
  for (const figure of ["errors_total", "failed_writes_total", "failed_reads_total"])
    if (metrics[figure] !== 0)
      campaign.violation(
        `the FileServer counts ${figure}: ${metrics[figure]}; it says ${cluster.fileserver.process.log()}`,
      );
}
