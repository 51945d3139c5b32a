// The twelve kinds of faults of the simulated cluster, each with its end.

import type { SeededRandom } from "#prove/seeded-random.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { ownersOn } from "./checks.ts";
import type { Person } from "./person.ts";
import { moveRoot } from "./root-moves.ts";
import { type Scheduler, simulation } from "./scheduler.ts";
import { type SimulatedFileServer, type SimulatedMetaServer, zombieHost } from "./servers.ts";
import { isWatched } from "./sessions-watch.ts";
import type { Heal, Victims } from "./victims.ts";

/** The kinds. */
export const FAULTS = [
  "node crash",
  "node restart",
  "metaserver crash",
  "partition",
  "one-way partition",
  "slow link",
  "lost reply",
  "duplicated messages",
  "clock jump",
  "full disk",
  "split registration",
  "root move",
] as const;
export type FaultKind = (typeof FAULTS)[number];

const HOUR_MS = 3_600_000;
const SLOW_MAX_MS = 8_000;
const GHOST_CHANCE = 0.5;
const TOGGLE_EVERY_MS = 3_000;
const REGISTERED_AGAIN_WITHIN_MS = 20_000;

/** Starts a fault; resolves with the function that ends it. */
export function befall(kind: FaultKind, victims: Victims): Promise<Heal> | Heal {
  const { random, meta } = victims;
  const scheduler = simulation();
  switch (kind) {
    case "node crash":
      return crash(random.pick(victims.nodes), random);
    case "node restart":
      return restart(random.pick(victims.nodes), victims);
    case "metaserver crash":
      return crashMeta(meta, random);
    case "partition":
    case "one-way partition":
      return cut(victims, kind === "partition");
    case "slow link":
      return slowDown(victims);
    case "lost reply":
      return loseReplies(victims);
    case "duplicated messages":
      return doubleMessages(victims);
    case "clock jump":
      return jump(scheduler, random.pick([meta, meta, ...victims.nodes]).host, random);
    case "full disk": {
      const node = random.pick(victims.nodes);
      node.setDiskFull(true);
      return () => node.setDiskFull(false);
    }
    case "split registration":
      return split(random.pick(victims.nodes), victims);
    case "root move":
      return moveRoot(victims);
    default:
      throw new Error(`no such fault: ${String(kind satisfies never)}`);
  }
}

function crash(node: SimulatedFileServer, random: SeededRandom): Heal {
  if (node.isUp) node.kill(random.chance(0.4));
  return () => node.start();
}

/**
 * Stops the node as an operator does, during an upload: running calls are finished, and only then the process
 * ends.
 */
async function restart(node: SimulatedFileServer, { network, people, violation }: Victims): Promise<Heal> {
  const host = people[0]?.host ?? "";
  const owners = ownersOn(node).filter((one) => !isWatched(one));
  const owner = owners.find((one) => !people.some(({ email }) => email === one)) ?? owners[0];
  const upload = network.isQuiet && owner !== undefined ? slowUpload(node, host, owner) : undefined;
  if (upload !== undefined) await simulation().run(UPLOAD_UNTIL_STOP_MS);
  await node.stop();
  const outcome = upload === undefined ? undefined : await simulation().runUntil(upload, UPLOAD_LIMIT_MS);
  // A user may have filled the quota, and another fault the disk.
  if (outcome !== undefined && !/quota|storage limit/.test(outcome))
    violation(`an upload that ran when ${node.id} was stopped failed: ${outcome}`);
  return () => node.start();
}

const UPLOAD_LIMIT_MS = 300_000;
const UPLOAD_UNTIL_STOP_MS = 2_000;
const PIECES = 12;
const PIECE_EVERY_MS = 400;

/** Uploads for five seconds; resolves with the error, if any. */
async function slowUpload(
  node: SimulatedFileServer,
  host: string,
  owner: string,
): Promise<string | undefined> {
  const scheduler = simulation();
  return scheduler.within(scheduler.spawn("slow uploader", host), async () => {
    const channel = new GrpcChannel({ addresses: [node.address] });
    const client = createClient(FileServer, channel);
    try {
      const { sessionToken } = await client.registerClient(
        { clientId: "rig" },
        { metadata: { authorization: `Bearer mock-jwt.${owner}` } },
      );
      await client.uploadFile(slowParts(scheduler), {
        metadata: { authorization: `Bearer ${sessionToken}` },
      });
      return undefined;
    } catch (error) {
      return String(error);
    } finally {
      channel.close();
    }
  });
}

async function* slowParts(scheduler: Scheduler): AsyncGenerator<object> {
  yield { part: { case: "header", value: { path: `/slow${scheduler.nowMs}` } } };
  for (let at = 0; at < PIECES; at++) {
    await new Promise<void>((resolve) => scheduler.after(PIECE_EVERY_MS, resolve));
    yield { part: { case: "chunk", value: { offset: BigInt(at * 1_000), data: new Uint8Array(1_000) } } };
  }
}

/**
 * Crashes the MetaServer. One time in three its disk is lost with it, and then half the time there is an
 * older copy.
 */
function crashMeta(meta: SimulatedMetaServer, random: SeededRandom): Heal {
  meta.backUp();
  const loses = random.chance(0.34);
  const hasCopy = random.chance(0.5);
  meta.kill(random.chance(0.4));
  return async () => {
    if (loses) meta.loseStore(hasCopy);
    await meta.start();
  };
}

/** Repeats control calls of nodes later, while shares come and go and a node registers again. */
async function doubleMessages({ network, random, people, nodes }: Victims): Promise<Heal> {
  network.ghostChance = GHOST_CHANCE;
  const [owner, other] = [people[0], people[1]];
  if (owner !== undefined && other !== undefined) void toggle(owner, other.email, random.between(6, 9));
  const node = random.pick(nodes);
  // Twice, so that calls of the first of the two processes may arrive when the second has the node. The
  // machine goes silently, since nothing more comes on a connection that was ended.
  for (const isSilent of [false, true]) {
    if (!node.isUp) break;
    node.kill(isSilent);
    await node.start();
    if (!isSilent) await simulation().run(random.next() * REGISTERED_AGAIN_WITHIN_MS);
  }
  return () => {
    network.ghostChance = 0;
  };
}

async function toggle(owner: Person, user: string, times: number): Promise<void> {
  const scheduler = simulation();
  for (let at = 0; at < times; at++) {
    await (at % 2 === 0 ? owner.share("/shared", user) : owner.unshare("/shared", user));
    await new Promise<void>((resolve) => scheduler.after(TOGGLE_EVERY_MS, resolve));
  }
}

function hostsOf({ meta, nodes, people }: Victims): string[] {
  return [meta.host, ...nodes.map(({ host }) => host), ...people.map(({ host }) => host)];
}

function cut(victims: Victims, isBothWays: boolean): Heal {
  const { network, random } = victims;
  const hosts = hostsOf(victims);
  const scheduler = simulation();
  const alone = random.pick(hosts);
  // One link, or all links of one host.
  const others = random.chance(0.5) ? hosts.filter((host) => host !== alone) : [random.pick(hosts)];
  const isInward = random.chance(0.5);
  for (const other of others) {
    scheduler.trace("cut", `${alone} ${isBothWays ? "-" : isInward ? "<" : ">"} ${other}`);
    if (isBothWays || !isInward) network.disturbance(alone, other).isCut = true;
    if (isBothWays || isInward) network.disturbance(other, alone).isCut = true;
  }
  return () => network.heal();
}

function slowDown(victims: Victims): Heal {
  const { network, random } = victims;
  const hosts = hostsOf(victims);
  const [from, to] = [random.pick(hosts), random.pick(hosts)];
  const delayMs = random.next() * SLOW_MAX_MS;
  simulation().trace("slow", `${from} ${to} ${Math.round(delayMs)}`);
  network.disturbance(from, to).delayMs = delayMs;
  network.disturbance(to, from).delayMs = delayMs;
  return () => network.heal();
}

/**
 * Loses replies while requests arrive, and then breaks every connection of that server: the outcome is
 * unknown to the caller.
 */
function loseReplies(victims: Victims): Heal {
  const { network, random, meta, nodes } = victims;
  const { host } = random.pick([meta, ...nodes]);
  simulation().trace("mute", host);
  for (const other of hostsOf(victims)) if (other !== host) network.disturbance(host, other).isCut = true;
  return () => {
    for (const connection of network.connections) if (connection.serverHost === host) connection.break();
    network.heal();
  };
}

function jump(scheduler: Scheduler, host: string, random: SeededRandom): Heal {
  // More often forwards: a lease that the wall clock ends is seen at once.
  const offsetMs = Math.round((random.next() - 0.3) * 18 * HOUR_MS);
  scheduler.trace("jump", `${host} ${offsetMs}`);
  scheduler.host(host).wallOffsetMs += offsetMs;
  return () => undefined;
}

/**
 * Cuts the old process off from the MetaServer, starts another on a copy of its data, then reconnects the old
 * one.
 */
async function split(node: SimulatedFileServer, { network, meta }: Victims): Promise<Heal> {
  if (!node.isUp) return () => undefined;
  const before = zombieHost(node.host);
  network.disturbance(before, meta.host).isCut = true;
  await node.clone();
  return () => network.heal();
}
