// How long an honest client's calls take, in calm moments and during each attack of the same run.
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, createClient, GrpcChannel } from "#grpc/client.ts";
import { FileServer } from "#proto/gen/grove/v1/file_server_pb.ts";
import type { Campaign } from "#prove/campaign.ts";

const CALL_LIMIT_MS = 30_000;
const BETWEEN_MS = 3;
const CALLS_AT_LEAST = 10;
/** Of fewer calls the p99 is the slowest of all, and tells what the machine did in that moment: then half of them must be slow. */
const CALLS_FOR_P99 = 100;

/** The client, and its times. */
export class Latencies {
  readonly #campaign: Campaign;
  readonly #timesMs = new Map<string, number[]>();
  #phase = "before";
  #isOver = false;
  readonly #done: Promise<void>;

  private constructor(campaign: Campaign, client: Client<typeof FileServer>, authorization: string) {
    this.#campaign = campaign;
    this.#done = this.#goOn(client, { authorization });
  }

  /** Signs in, and calls from now on. */
  static async begin(campaign: Campaign, address: string): Promise<Latencies> {
    const channel = new GrpcChannel({ addresses: [address] });
    campaign.atEnd(() => channel.close());
    const client = createClient(FileServer, channel);
    const metadata = { authorization: "Bearer mock-jwt.steady@example.com" };
    const { sessionToken } = await client.registerClient({}, { metadata });
    const latencies = new Latencies(campaign, client, `Bearer ${sessionToken}`);
    campaign.atEnd(() => {
      latencies.#isOver = true;
    });
    return latencies;
  }

  /** What goes on from now; a call counts for the phase that it was begun in. */
  during(phase: string): void {
    this.#phase = phase;
  }

  /**
   * Ends the calls, and compares: the p99 of each attack with that of the calm, or with the floor where that is higher. Of an attack that
   * saw less than a hundred calls the median is compared so.
   */
  async judge(floorMs: number, slowerMax: number): Promise<void> {
    this.during("calm");
    while ((this.#timesMs.get("calm") ?? []).length < CALLS_AT_LEAST && !this.#campaign.isOver())
      await sleep(BETWEEN_MS);
    this.#isOver = true;
    await this.#done;
    const calm = this.#timesMs.get("calm") ?? [];
    const calmMs = p99(calm);
    this.#campaign.figure("calm p99 ms", tenths(calmMs));
    if (calm.length < CALLS_AT_LEAST) throw new Error(`only ${calm.length} calls in calm moments`);
    let worst = 0;
    for (const [kind, timesMs] of this.#timesMs) {
      if (["before", "calm", "after"].includes(kind)) continue;
      const attackedMs = p99(timesMs);
      this.#campaign.figure(`${kind}: p99 ms`, tenths(attackedMs));
      worst = Math.max(worst, attackedMs / calmMs);
      const isFew = timesMs.length < CALLS_FOR_P99;
      const judgedMs = isFew ? percentile(timesMs, 0.5) : attackedMs;
      if (judgedMs > Math.max(floorMs, calmMs * slowerMax))
        this.#campaign.violation(
          `${kind}: another client's ${isFew ? "median" : "p99"} is ${tenths(judgedMs)} ms, and the p99 ${tenths(calmMs)} ms without it`,
        );
    }
    this.#campaign.figure("times slower at most", tenths(worst));
  }

  async #goOn(
    client: Client<typeof FileServer>,
    metadata: { readonly authorization: string },
  ): Promise<void> {
    while (!this.#isOver) {
      const phase = this.#phase;
      const startedMs = performance.now();
      try {
        await client.getAttr({ path: "/" }, { metadata, timeoutMs: CALL_LIMIT_MS });
      } catch (error) {
        this.#campaign.violation(`during ${phase} another client's call failed: ${String(error)}`);
        await sleep(200);
      }
      const times = this.#timesMs.get(phase) ?? [];
      times.push(performance.now() - startedMs);
      this.#timesMs.set(phase, times);
      this.#campaign.count("honest calls");
      await sleep(BETWEEN_MS);
    }
  }
}

const p99 = (timesMs: readonly number[]): number => percentile(timesMs, 0.99);

function percentile(timesMs: readonly number[], part: number): number {
  const sorted = timesMs.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

const tenths = (value: number): number => Math.round(value * 10) / 10;
