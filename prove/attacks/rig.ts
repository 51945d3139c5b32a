// Attacks by HTTP/2 frames and by slow clients on a FileServer, a console and a server with TLS that run as processes (F13: B-01 to B-07).
// Each attack runs in short strokes from a process and an address of its own; beside it an honest client on a kept connection reads
// and asks all the time, and its times are compared with those of the calm moments between the strokes of the same run. The
// servers' memory is read ten times a second. After each stroke new honest connections must be let in. It cannot see attacks from
// more addresses than a few, nor what a real network's delays would add; on a busy machine the times are the machine's.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createAuthority } from "#authority/authority.ts";
import { systemClock } from "#base/clock.ts";
import type { Campaign } from "#prove/campaign.ts";
import { footprintOf, type GroveProcess, startGroveProcess } from "#prove/grove-process.ts";
import { HonestClient } from "#prove/mutations/honest-client.ts";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import { type SmallCluster, startSmallCluster } from "#prove/small-cluster.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import type { Order } from "./attacker.ts";
import { BIG_FILE, prepareAttacker } from "./attackers-session.ts";
import { ATTACKS, type Struck } from "./kinds.ts";
import { Latencies } from "./latencies.ts";

const KINDS = narrowedTo(Object.keys(ATTACKS), (kind) => kind);
const FROM = "127.0.0.66";
const STROKE_MS = 800;
const LONGEST_STROKE_MS = 16 * STROKE_MS;
const SHORT_STROKE_MS = 250;
const CALM_MS = 250;
const SHORT_CALM_MS = 120;
const MEMORY_MAX_MB = 400;
const MEMORY_EVERY_MS = 100;
/** The times of attacks may be so many times those of calm moments. */
const SLOWER_MAX = 5;
/** Below this the machine's own unrest decides. */
const FLOOR_MS = 20;
/** With one or two strokes of each kind, so a few calls on a busy machine, only what hardly moves at all is told. */
const FLOOR_FROM: number = Object.keys(ATTACKS).length * 2;
const SHORT_FLOOR_MS = 3_000;
const ATTACKER = fileURLToPath(new URL("attacker.ts", import.meta.url));

/** The rig. */
export const attacks: Rig = {
  name: "attacks",
  figure: "F13",
  unit: "strokes",
  proves: "no flood of frames and no slow client takes another client's time or the server's memory",
  goal: KINDS.length * 20,
  shortGoal: KINDS.length,
  plantedGoal: KINDS.length + 1,
  async run(campaign) {
    const folder = await campaign.folder("memory");
    const cluster = await startSmallCluster(folder, { keepsLimits: true });
    campaign.atEnd(() => cluster.stop());
    const tls = await startTlsServer(campaign, join(folder, "tls"));
    const port = portOf(cluster.fileserver.address);
    const place = {
      port,
      tlsPort: tls.port,
      consolePort: portOf(cluster.console.address),
      from: FROM,
      token: await prepareAttacker(port, FROM),
      bigFile: BIG_FILE,
    };
    const attacker = fork(ATTACKER, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
    campaign.atEnd(() => attacker.kill("SIGKILL"));
    const isShort = campaign.goal <= attacks.shortGoal;
    const latencies = await Latencies.begin(campaign, cluster.fileserver.address);
    let now = "";
    const peaks = watchMemory(campaign, () => now, [
      ...cluster.all.map(({ process }) => process),
      tls.process,
    ]);
    for (let turn = 0; campaign.shouldGoOn(); turn++) {
      const kind = KINDS[turn % KINDS.length] as string;
      latencies.during("calm");
      await sleep(isShort ? SHORT_CALM_MS : CALM_MS);
      latencies.during(kind);
      now = kind;
      await strike(campaign, attacker, { ...place, kind, ms: isShort ? SHORT_STROKE_MS : STROKE_MS });
      latencies.during("after");
      await letsIn(campaign, cluster, kind);
      campaign.step();
    }
    peaks.judge();
    await latencies.judge(campaign.goal < FLOOR_FROM ? SHORT_FLOOR_MS : FLOOR_MS, SLOWER_MAX);
  },
};

const portOf = (address: string): number => Number(address.split(":")[1]);

async function strike(campaign: Campaign, attacker: ChildProcess, order: Order): Promise<void> {
  for (let { ms } = order; ms <= LONGEST_STROKE_MS; ms *= 2) {
    const answered = once(attacker, "message");
    attacker.send({ ...order, ms });
    const [{ strokes, complaint }] = (await answered) as [Struck];
    campaign.count(order.kind, strokes);
    if (complaint !== undefined) campaign.violation(`${order.kind}: ${complaint}`);
    // On a busy machine the time may be over before there is a connection.
    if (complaint !== undefined || strokes > 0) return;
  }
  throw new Error(`${order.kind} did not strike`);
}

/** Somebody new comes after the stroke, and is served. */
async function letsIn(
  campaign: Campaign,
  { fileserver, console, all }: SmallCluster,
  kind: string,
): Promise<void> {
  for (const { name, process } of all)
    if (!process.isRunning()) campaign.violation(`${name} has ended in ${kind}: ${process.log()}`);
  const client = new HonestClient(fileserver.address, console.address);
  const trouble = await client.isServed();
  client.close();
  if (trouble !== undefined) campaign.violation(`after ${kind} a new client was not served: ${trouble}`);
}

async function startTlsServer(
  campaign: Campaign,
  folder: string,
): Promise<{ port: number; process: GroveProcess }> {
  await mkdir(folder, { recursive: true });
  const authority = await createAuthority(join(folder, "ca"), { clock: systemClock });
  const issued = await authority.issueNodeCertificate({ id: "n2", addresses: ["127.0.0.1"] });
  const [cert, key] = [join(folder, "n2.pem"), join(folder, "n2.key")];
  await writeFile(cert, issued.certificatePem);
  await writeFile(key, issued.keyPem, { mode: 0o600 });
  const [port = 0] = await freeGrpcPorts(1);
  const process = await startGroveProcess([
    "fileserver",
    "-data",
    join(folder, "data"),
    "-id",
    "n2",
    "-listen",
    `127.0.0.1:${port}`,
    "-tls_cert",
    cert,
    "-tls_key",
    key,
    "-tls_ca",
    authority.certificatePath,
    "-reserve",
    "1MiB",
  ]);
  campaign.atEnd(() => process.end("SIGKILL"));
  return { port, process };
}

function watchMemory(
  campaign: Campaign,
  kindNow: () => string,
  processes: readonly GroveProcess[],
): { judge(): void } {
  let peakMb = 0;
  let peakIn = "";
  const timer = setInterval(() => {
    for (const process of processes) {
      if (!process.isRunning()) continue;
      const { memoryMb } = footprintOf(process.pid);
      if (memoryMb <= peakMb) continue;
      peakMb = memoryMb;
      if (memoryMb > MEMORY_MAX_MB && peakIn === "") peakIn = kindNow();
    }
  }, MEMORY_EVERY_MS);
  campaign.atEnd(() => clearInterval(timer));
  return {
    judge() {
      campaign.figure("MB at most", Math.round(peakMb));
      if (peakIn !== "") campaign.violation(`a server took ${Math.round(peakMb)} MB, first in ${peakIn}`);
    },
  };
}
