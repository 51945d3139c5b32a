// Attacks a FileServer, a console and a server with TLS by HTTP/2 frames and slow clients (F13: B-01 to
// B-07).
//
// Each attack runs in short strokes from a process and an address of its own. Beside it an honest client on a
// kept connection reads and asks all the time. Its times are compared with those of the calm phases between
// the strokes of the same run. The servers' memory is read ten times a second. After each stroke the servers
// must accept new honest connections.
//
// It cannot see attacks from more addresses than a few, nor delays of a real network; on a busy machine the
// times are the machine's.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { systemClock } from "#base/clock.ts";
import type { Campaign } from "#prove/campaign.ts";
import { type GroveProcess, startGroveProcess } from "#prove/grove-process.ts";
import { HonestClient } from "#prove/mutations/honest-client.ts";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import { type SmallCluster, startSmallCluster } from "#prove/small-cluster.ts";
import { createAuthority } from "#security/authority/authority.ts";
import { freeGrpcPorts } from "#testing/free-ports.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { BIG_FILE, prepareAttacker } from "./attackers-session.ts";
import type { AttackPlace } from "./flood.ts";
import { HonestSide, type HonestTask } from "./honest-side.ts";
import { ATTACKS } from "./kinds.ts";
import { watchMemory } from "./memory-watch.ts";
import { startAttacker, strike } from "./orders.ts";

const KINDS = narrowedTo(Object.keys(ATTACKS), (kind) => kind);
const FROM = "127.0.0.66";
const STROKE_MS = 800;
const LONGEST_STROKE_MS = 16 * STROKE_MS;
const SHORT_STROKE_MS = 250;
const CALM_MS = 250;
const SHORT_CALM_MS = 120;
const CALM_CALLS_AT_LEAST = 10;
const ASKS_EVERY_MS = 3;
const CALL_LIMIT_MS = 30_000;
/** Calls during an attack may take this many times as long as in calm phases. */
const SLOWER_MAX = 5;
/** Below this the machine's own load decides. */
const FLOOR_MS = 20;
/** With one or two strokes of each kind there are few calls on a busy machine: the higher floor holds. */
const FLOOR_FROM: number = Object.keys(ATTACKS).length * 2;
const SHORT_FLOOR_MS = 3_000;
/**
 * The attack after which no session may be freed before its streams, and the time that a server may take to
 * collect them.
 */
const ENDS_SESSIONS = "trailers abuse";
const COLLECTED_WITHIN_MS = 60_000;
const COLLECTIONS = fileURLToPath(new URL("collections.ts", import.meta.url));
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
    const nodeFlags = ["--import", COLLECTIONS];
    const cluster = await startSmallCluster(folder, { keepsLimits: true, nodeFlags });
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
    const isShort = campaign.goal <= attacks.shortGoal;
    const attacker = startAttacker(campaign, ATTACKER, isShort);
    const honest = new HonestSide(campaign, [await steadyUser(campaign, cluster.fileserver.address)]);
    let now = "";
    const servers = [...cluster.all.map(({ process }) => process), tls.process];
    const peaks = watchMemory(
      campaign,
      () => now,
      () => servers,
    );
    for (let turn = 0; campaign.shouldGoOn(); turn++) {
      const kind = KINDS[turn % KINDS.length] as string;
      honest.during("calm");
      await sleep(isShort ? SHORT_CALM_MS : CALM_MS);
      honest.during(kind);
      now = kind;
      const order = { ...place, kind, ms: isShort ? SHORT_STROKE_MS : STROKE_MS };
      const judgesCollections =
        kind === ENDS_SESSIONS ? watchCollections(cluster.fileserver.process) : undefined;
      const complaint = await strike<AttackPlace>(campaign, attacker, order, LONGEST_STROKE_MS);
      if (complaint !== undefined) campaign.violation(`${kind}: ${complaint}`);
      honest.during("after");
      for (const refused of await honest.refusalsOf(kind)) campaign.violation(`${kind}: ${refused}`);
      await letsIn(campaign, cluster, kind);
      await judgesCollections?.(campaign);
      campaign.step();
    }
    peaks.tell();
    for (const kind of KINDS) {
      const tooMuch = peaks.tooMuchIn(kind);
      if (tooMuch !== undefined) campaign.violation(`${kind}: ${tooMuch}`);
    }
    await honest.calmDown(CALM_CALLS_AT_LEAST);
    await honest.end();
    for (const phase of ["calm", "after"])
      for (const refused of await honest.refusalsOf(phase)) campaign.violation(`${phase}: ${refused}`);
    honest.judge(campaign.goal < FLOOR_FROM ? SHORT_FLOOR_MS : FLOOR_MS, SLOWER_MAX);
  },
};

const portOf = (address: string): number => Number(address.split(":")[1]);

/** A signed-in user who repeats one small call. */
async function steadyUser(campaign: Campaign, address: string): Promise<HonestTask> {
  const channel = new GrpcChannel({ addresses: [address] });
  campaign.atEnd(() => channel.close());
  const calls = createClient(FileServer, channel);
  const idToken = { authorization: "Bearer mock-jwt.steady@example.com" };
  const { sessionToken } = await calls.registerClient({}, { metadata: idToken });
  const options = { metadata: { authorization: `Bearer ${sessionToken}` }, timeoutMs: CALL_LIMIT_MS };
  return {
    name: "GetAttr",
    everyMs: ASKS_EVERY_MS,
    isPaced: true,
    once: async () => void (await calls.getAttr({ path: "/" }, options)),
  };
}

/** Makes a server watch its sessions; the returned function makes it collect them, and judges. */
function watchCollections({ pid, log, isRunning }: GroveProcess): (campaign: Campaign) => Promise<void> {
  if (isRunning()) process.kill(pid, "SIGPWR");
  return async (campaign) => {
    if (!isRunning()) return;
    process.kill(pid, "SIGPWR");
    const lateMs = performance.now() + COLLECTED_WITHIN_MS;
    let said: RegExpMatchArray | undefined;
    while (said === undefined && isRunning() && performance.now() < lateMs) {
      await sleep(20);
      said = [...log().matchAll(/^collected (\d+) sessions, (\d+) not after their streams$/gm)].at(-1);
    }
    const [, gone = "0", wrong = "0"] = said ?? [];
    campaign.count("sessions collected", Number(gone));
    if (isRunning() && Number(gone) === 0) throw new Error("no closed session was collected");
    if (Number(wrong) > 0)
      campaign.violation(
        `${wrong} of ${gone} closed sessions were freed before or together with their streams`,
      );
  };
}

/** Checks that a new client is served after the stroke. */
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
