// How an attacker is told what to do: it is a process of its own, of low priority, and takes orders from the rig until that is gone.
import { type ChildProcess, fork } from "node:child_process";
import { constants, setPriority } from "node:os";
import type { Campaign } from "#prove/campaign.ts";

/** How often it struck; or what the server did that it must not do. */
export interface Struck {
  readonly strokes: number;
  readonly complaint?: string;
}

/** What tells an attack how long it goes on. */
export interface StrokeTime {
  readonly isOver: () => boolean;
  /** Its time begins to count when all of these are done: what must stand before it takes effect. */
  readonly countFrom: (setUp: Promise<unknown>) => void;
}

/** An order: attack so, at this place, for so long. */
export type OrderAt<Place> = Omit<Place, keyof StrokeTime> & {
  readonly kind: string;
  readonly ms: number;
  /** What must stand first may take so long; SET_UP_MAX_MS by default. */
  readonly setUpMaxMs?: number;
};

/** What an attacker says: that its time counts from now, and in the end what it has struck. */
type Said = Struck | "stands";

/** Setting up may take no longer, so that a server that lets nobody in ends no rig. */
const SET_UP_MAX_MS = 12_000;

/** The attacker's side: does what it is told, one order after the other. */
export function takeOrders(kinds: Readonly<Record<string, (place: never) => Promise<Struck>>>): void {
  setPriority(constants.priority.PRIORITY_LOW);
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

/** Starts an attacker, which ends with the campaign. */
export function startAttacker(campaign: Campaign, program: string): ChildProcess {
  const attacker = fork(program, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  campaign.atEnd(() => attacker.kill("SIGKILL"));
  return attacker;
}

/** Has it strike once, and counts; gives what the server did that it must not do. @throws Error when nothing was struck in many times as long */
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
