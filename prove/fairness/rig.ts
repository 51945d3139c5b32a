// One user who takes all that the server gives of one budget or queue, and another with modest calls (F26).
//
// Each kind of greed has strokes of its own, by a user who signs in for it, from a process of low priority;
// its set-up does not count. Beside it another user reads attributes, makes folders, and writes small files
// and ranges of a large one all the time. None of those calls may be refused, and each kind of call is
// compared with the calm phases of the same run. A whole run prints the table.
//
// It cannot see what several greedy users do together, nor queues that only a slow disk fills: data lies in
// memory where there is room.
//
//   npm run prove -- fairness --short --no-planted             some kinds, drawn at random, in seconds
//   npm run prove -- fairness --short --goal 12 --no-planted   each kind once, in seconds
//   npm run prove -- fairness --no-planted                     each kind three times for five seconds,
//                                                              with 50,000 entries in a listing
//   GROVE_PROVE_NARROW="sorted listings" npm run prove -- fairness --no-planted   only these
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { METRICS_PORT_OFFSET } from "#base/metrics-port.ts";
import { HonestSide, type HonestTask } from "#prove/attacks/honest-side.ts";
import { startAttacker, strike } from "#prove/attacks/orders.ts";
import type { Campaign } from "#prove/campaign.ts";
import { freeFileServerAddress } from "#prove/file-server.ts";
import { startGroveProcess } from "#prove/grove-process.ts";
import { narrowedTo, type Rig } from "#prove/rig.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { GREEDY_KINDS } from "./greedy-kinds.ts";
import type { GreedyPlace } from "./greedy-place.ts";

const KINDS = narrowedTo(Object.keys(GREEDY_KINDS), (kind) => kind);
/** As many as ten seconds are enough for. */
const SHORT_KINDS = 3;
/** A kind that ends too slowly for those ten seconds. */
const LONG_KIND = "downloads read slowly";
const MEMORY_NEEDED_BYTES = 4 * 2 ** 30;
const STROKE_MS = 5_000;
const SHORT_STROKE_MS = 500;
const LONGEST_STROKE_MS = 40_000;
const SET_UP_MAX_MS = 60_000;
const CALM_CALLS = 150;
const SHORT_CALM_CALLS = 10;
const CALM_CALLS_BETWEEN = 10;
const SLOWER_MAX = 5;
/** Below this the machine's own load decides. */
const FLOOR_MS = 40;
/** Floor for strokes of less than a second, which see few calls. */
const SHORT_FLOOR_MS = 1_500;
const CALL_LIMIT_MS = 30_000;
const RANGED_BYTES = 300_000;
const GREEDY = fileURLToPath(new URL("greedy.ts", import.meta.url));

/** See the head of this file. */
export const fairness: Rig = {
  name: "fairness",
  figure: "F26",
  unit: "strokes",
  proves: "one user at their greediest takes no other user's time and has none of their calls refused",
  goal: KINDS.length * 3,
  shortGoal: Math.min(SHORT_KINDS, KINDS.length),
  plantedGoal: KINDS.length,
  async run(campaign) {
    const isShort = campaign.goal <= KINDS.length;
    const isDrawn = KINDS.length > SHORT_KINDS && isShort;
    const kinds = isDrawn ? campaign.random.shuffled(KINDS.filter((kind) => kind !== LONG_KIND)) : KINDS;
    const data = join(await campaign.folder("memory", MEMORY_NEEDED_BYTES), "node");
    const address = await freeFileServerAddress();
    const words = ["fileserver", "-id", "n1", "-listen", address, "-data", data, "-reserve", "1MiB"];
    const server = await startGroveProcess([...words, "-log_level", "warn"]);
    campaign.atEnd(() => server.end("SIGKILL"));
    const greedy = startAttacker(campaign, GREEDY, isShort);
    const honest = new HonestSide(campaign, await modestTasks(campaign, address), isShort);
    const metricsUrl = `http://127.0.0.1:${Number(address.split(":")[1]) - METRICS_PORT_OFFSET}/metrics`;
    await honest.calmDown(isShort ? SHORT_CALM_CALLS : CALM_CALLS);
    for (let turn = 0; campaign.shouldGoOn(); turn++) {
      const kind = kinds[turn % kinds.length] as string;
      const order = {
        address,
        metricsUrl,
        isShort,
        kind,
        ms: isShort ? SHORT_STROKE_MS : STROKE_MS,
        setUpMaxMs: SET_UP_MAX_MS,
      };
      honest.during("after");
      const struck = strike<GreedyPlace>(campaign, greedy, order, LONGEST_STROKE_MS, () =>
        honest.during(kind),
      );
      const complaint = await struck;
      honest.during("after");
      const wrong = [complaint, ...(await honest.refusalsOf(kind))].filter((each) => each !== undefined);
      if (!server.isRunning()) wrong.push(`the server has ended: ${server.log().slice(-300)}`);
      if (wrong.length > 0) campaign.violation(`${kind}: ${wrong.join("; ")}`);
      campaign.step();
      if (!server.isRunning()) break;
      await honest.calmDown(CALM_CALLS_BETWEEN);
    }
    await honest.end();
    honest.judge(isShort ? SHORT_FLOOR_MS : FLOOR_MS, SLOWER_MAX);
    if (!isShort) process.stderr.write(`${honest.table().join("\n")}\n`);
  },
};

/** The modest user's calls, all the time. */
async function modestTasks(campaign: Campaign, address: string): Promise<HonestTask[]> {
  const channel = new GrpcChannel({ addresses: [address] });
  campaign.atEnd(() => channel.close());
  const calls = createClient(FileServer, channel);
  const idToken = { authorization: "Bearer mock-jwt.modest@example.com" };
  const { sessionToken } = await calls.registerClient({}, { metadata: idToken, waitForReady: true });
  const options: CallOptions = {
    metadata: { authorization: `Bearer ${sessionToken}` },
    timeoutMs: CALL_LIMIT_MS,
  };
  await calls.createDirectory({ path: "/made" }, options);
  await calls.createFile({ path: "/ranged" }, options);
  await calls.writeFile({ path: "/ranged", data: Buffer.alloc(RANGED_BYTES, 1) }, options);
  let count = 0;
  const task = (name: string, everyMs: number, once: () => Promise<unknown>): HonestTask => ({
    name,
    everyMs,
    isPaced: true,
    once: async () => void (await once()),
  });
  return [
    task("GetAttr", 3, () => calls.getAttr({ path: "/made" }, options)),
    task("mkdir", 10, () => calls.createDirectory({ path: `/made/${count++}` }, options)),
    task("small write", 10, () =>
      calls.createFile({ path: `/made/f${count++}`, data: Buffer.from("small") }, options),
    ),
    task("ranged write", 15, () => {
      const offset = BigInt((count++ * 7_919) % RANGED_BYTES);
      return calls.writeFile({ path: "/ranged", offset, data: Buffer.from("r") }, options);
    }),
  ];
}
