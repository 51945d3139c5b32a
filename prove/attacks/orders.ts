// Orders to an attacker, which is a process of its own with low priority and ends with the rig.
import { type ChildProcess, fork } from "node:child_process";
import { constants, getPriority, setPriority } from "node:os";
import type { Campaign } from "#prove/campaign.ts";

/** Number of strokes, or the server's forbidden answer. */
export interface Struck {
  readonly strokes: number;
  readonly complaint?: string;
}

/** The time of an attack. */
export interface StrokeTime {
  readonly isOver: () => boolean;
  /** The time counts once all of these are done: connections and the like that the attack needs first. */
  readonly countFrom: (setUp: Promise<unknown>) => void;
}

/** An order: this attack, at this place, for this time. */
export type OrderAt<Place> = Omit<Place, keyof StrokeTime> & {
  readonly kind: string;
  readonly ms: number;
  /** Most time for the set-up; SET_UP_MAX_MS by default. */
  readonly setUpMaxMs?: number;
};

/** Messages of an attacker: "stands" when its time begins to count, its strokes at the end. */
type Said = Struck | "stands";

/** Bound of the set-up, so that a server that refuses all connections does not hold the rig. */
const SET_UP_MAX_MS = 12_000;

/** The attacker's side: carries out one order after the other. */
export function takeOrders(kinds: Readonly<Record<string, (place: never) => Promise<Struck>>>): void {
  setPriority(Number(process.argv[2]));
  process.on("message", (order: OrderAt<unknown>) => {
    const attack = kinds[order.kind];
    const place = { ...order, ...strokeTime(order) } as never;
    const struck: Promise<Struck> =
      attack === undefined ? Promise.reject(new Error("no such attack")) : attack(place);
    struck.then(
      (result) => process.send?.(result),
      (error: unknown) =>
        process.send?.({ strokes: 0, complaint: `the attack failed: ${String(error)}` } satisfies Struck),
    );
  });
  process.on("disconnect", () => process.exit(0));
}

function answerOf(attacker: ChildProcess, onStanding: () => void): Promise<Struck> {
  return new Promise((resolve) => {
    const hear = (said: Said): void => {
      if (said === "stands") return onStanding();
      attacker.off("message", hear);
      return resolve(said);
    };
    attacker.on("message", hear);
  });
}

function strokeTime({ ms, setUpMaxMs = SET_UP_MAX_MS }: OrderAt<unknown>): StrokeTime {
  const latestMs = performance.now() + setUpMaxMs;
  let endMs = performance.now() + ms;
  let settingUp = 0;
  return {
    isOver: () => {
      const nowMs = performance.now();
      return nowMs >= endMs && (settingUp === 0 || nowMs >= latestMs);
    },
    countFrom(setUp) {
      settingUp++;
      const isUp = (): void => {
        settingUp--;
        endMs = performance.now() + ms;
        process.send?.("stands" satisfies Said);
      };
      setUp.then(isUp, isUp);
    },
  };
}

/**
 * Starts an attacker, which ends with the campaign. It leaves the servers their processor time, as if it had
 * a machine of its own. In the short form it has a tenth of a server's weight: the lowest priority gets so
 * little time beside other tests that the set-up of one stroke takes minutes.
 */
export function startAttacker(campaign: Campaign, program: string, isShort: boolean): ChildProcess {
  const { PRIORITY_BELOW_NORMAL, PRIORITY_LOW } = constants.priority;
  const priority = isShort ? Math.min(getPriority() + PRIORITY_BELOW_NORMAL, PRIORITY_LOW) : PRIORITY_LOW;
  const attacker = fork(program, [`${priority}`], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  campaign.atEnd(() => attacker.kill("SIGKILL"));
  return attacker;
}

/**
 * Orders one attack and counts it; returns the server's forbidden answer, if any.
 * @throws Error when nothing was struck in many times as long
 */
export async function strike<Place>(
  campaign: Campaign,
  attacker: ChildProcess,
  order: OrderAt<Place>,
  longestMs: number,
  onStanding: () => void = () => undefined,
): Promise<string | undefined> {
  for (let { ms } = order; ms <= longestMs; ms *= 2) {
    const answered = answerOf(attacker, onStanding);
    attacker.send({ ...order, ms });
    const { strokes, complaint } = await answered;
    campaign.count(order.kind, strokes);
    // On a busy machine the time may be over before there is a connection.
    if (complaint !== undefined || strokes > 0) return complaint;
  }
  throw new Error(`${order.kind} did not strike`);
}
