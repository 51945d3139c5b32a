// A FileServer and a MetaServer at full load for minutes (F22).
//
// Memory must stop growing; descriptors, temporary files and the write-ahead log must go back to what they
// were. Six users in the rig's process (which takes one of two cores) draw operations without a pause. They
// make small and large uploads, overwrites, downloads that are compared byte by byte, renames, trash,
// removals, sign-ins beyond the sixth session and new connections. Uploads, resumable uploads and downloads
// are broken off at a random byte. At the end each user removes everything, and the open descriptors of each
// process are compared path by path with those before the load.
//
// It cannot see a leak below a megabyte a minute, a leak that needs more than eight minutes to begin, and
// memory that is held but was resident before. In its short form it does not judge memory at all.
import { join } from "node:path";
import type { Campaign } from "#prove/campaign.ts";
import { type GroveProcess, startGroveProcess } from "#prove/grove-process.ts";
import type { Rig } from "#prove/rig.ts";
import { DATABASE_FILE } from "#storage/metadata/schema.ts";
import { WAL_CHECKPOINT_BYTES } from "#storage/writer/writer.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { BusyUser } from "./load.ts";
import { leftOver, openHandles, ProcessWatch, transientFiles } from "./watch.ts";

const USERS = 6;
const SECOND_MS = 1_000;
/** Only then has a heap reached its size, so that a slope means something. */
const SLOPE_FROM_SECONDS = 120;
const SLOPE_MAX_MB_PER_MINUTE = 1;
/** At four times the limit for its length a checkpoint waits for readers; one transaction may still come. */
const WAL_MAX_MB: number = (4.25 * WAL_CHECKPOINT_BYTES) / 1_048_576;
const SETTLE_TRIES = 150;
const SETTLE_EVERY_MS = 100;

interface Cluster {
  readonly node: GroveProcess;
  readonly meta: GroveProcess;
  readonly address: string;
  readonly nodeData: string;
  readonly nodeDatabase: string;
  readonly metaDatabase: string;
}

async function startCluster(campaign: Campaign): Promise<Cluster> {
  const folder = await campaign.folder();
  const [first = 0, second = 0] = await freeGrpcPorts(2);
  const metaDatabase = join(folder, "meta.db");
  const listen = `127.0.0.1:${second}`;
  const metaWords = ["-listen", listen, "-meta", `sqlite:${metaDatabase}`, "-data", join(folder, "meta")];
  const meta = await startGroveProcess(["metaserver", ...metaWords, "-mock"]);
  campaign.atEnd(() => meta.end("SIGKILL"));
  const address = `127.0.0.1:${first}`;
  const nodeData = join(folder, "node");
  const nodeWords = ["-id", "n1", "-listen", address, "-data", nodeData, "-metaserver", listen];
  const node = await startGroveProcess(["fileserver", ...nodeWords, "-mock", "-reserve", "1MiB"]);
  campaign.atEnd(() => node.end("SIGKILL"));
  return { node, meta, address, nodeData, nodeDatabase: join(nodeData, DATABASE_FILE), metaDatabase };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Makes the servers load every lazy thread, module and file before the first sample. */
async function warmUp(cluster: Cluster, campaign: Campaign): Promise<void> {
  const random = campaign.random.fork("warm-up");
  const user = new BusyUser("warm@example.com", cluster.address, random, reportTo(campaign));
  const end = performance.now() + SECOND_MS;
  await user.work(() => performance.now() < end);
  await user.leave();
  await settled(() => transientFiles(cluster.nodeData).length === 0);
}

/** Waits until the condition holds, for fifteen seconds at most; the caller checks it again. */
async function settled(isSo: () => boolean): Promise<void> {
  for (let tries = 0; tries < SETTLE_TRIES && !isSo(); tries++) await pause(SETTLE_EVERY_MS);
}

function reportTo(campaign: Campaign): ConstructorParameters<typeof BusyUser>[3] {
  return {
    acknowledged: (kind) => campaign.count(kind),
    violation: (text) => campaign.violation(text),
  };
}

async function loadFor(
  cluster: Cluster,
  campaign: Campaign,
  watches: readonly ProcessWatch[],
): Promise<void> {
  const state = { isOn: true };
  const users = Array.from({ length: USERS }, (_, index) => {
    const random = campaign.random.fork(`user ${index}`);
    return new BusyUser(`user${index}@example.com`, cluster.address, random, reportTo(campaign));
  });
  campaign.atEnd(() => users.forEach((user) => user.close()));
  const work = Promise.all(users.map((user) => user.work(() => state.isOn)));
  work.catch(() => {
    state.isOn = false;
  });
  while (state.isOn && campaign.shouldGoOn() && cluster.node.isRunning() && cluster.meta.isRunning()) {
    await pause(SECOND_MS);
    campaign.step();
    for (const watch of watches) watch.look(performance.now());
  }
  state.isOn = false;
  await work;
  await Promise.all(users.map((user) => user.leave()));
}

function judge(campaign: Campaign, watches: Readonly<Record<string, ProcessWatch>>): void {
  for (const [name, watch] of Object.entries(watches)) {
    campaign.figure(`${name} memory MB`, Math.round(watch.memoryMaxMb));
    campaign.figure(`${name} log MB`, Math.round(watch.walMaxMb * 10) / 10);
    if (watch.walMaxMb > WAL_MAX_MB)
      campaign.violation(`the write-ahead log of ${name} grew to ${watch.walMaxMb.toFixed(1)} MB`);
    if (campaign.done < SLOPE_FROM_SECONDS) continue;
    const slope = watch.slopeMbPerMinute;
    campaign.figure(`${name} slope MB/min`, Math.round(slope * 100) / 100);
    if (slope >= SLOPE_MAX_MB_PER_MINUTE)
      campaign.violation(`the memory of ${name} grows by ${slope.toFixed(2)} MB a minute`);
  }
}

async function run(campaign: Campaign): Promise<void> {
  const cluster = await startCluster(campaign);
  const { node, meta, nodeData, nodeDatabase, metaDatabase } = cluster;
  await warmUp(cluster, campaign);
  const processes = [node, meta];
  const databases = [nodeDatabase, metaDatabase];
  const before = processes.map(({ pid }) => openHandles(pid));
  const watches = {
    fileserver: new ProcessWatch({ name: "fileserver", pid: node.pid, database: nodeDatabase }),
    metaserver: new ProcessWatch({ name: "metaserver", pid: meta.pid, database: metaDatabase }),
  };
  await loadFor(cluster, campaign, Object.values(watches));
  for (const [index, each] of processes.entries()) {
    const name = ["fileserver", "metaserver"][index];
    if (!each.isRunning()) {
      campaign.violation(`the ${name} ended: ${each.log()}`);
      continue;
    }
    const kept = (): string[] => leftOver(before[index] ?? [], openHandles(each.pid), databases[index] ?? "");
    await settled(() => kept().length === 0);
    if (kept().length > 0)
      campaign.violation(`the ${name} still has open: ${kept().slice(0, 20).join(", ")}`);
  }
  await settled(() => transientFiles(nodeData).length === 0);
  const files = transientFiles(nodeData);
  if (files.length > 0)
    campaign.violation(`${files.length} files are left over: ${files.slice(0, 10).join(", ")}`);
  judge(campaign, watches);
}

/** See above. */
export const soak: Rig = {
  name: "soak",
  figure: "F22",
  proves: "Minutes of full load leave no growing memory, no open handles, no temporary files, no long log",
  unit: "seconds under load",
  goal: 480,
  shortGoal: 3,
  run,
};
