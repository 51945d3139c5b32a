// The faults of each call, and the outcomes that a store may have.
import { constants } from "node:os";
import type { Scene } from "#prove/calls/scene.ts";
import { type Fault, type FollowedCall, kindOf } from "#prove/calls/traced-process.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";

const { EIO, ENOSPC, EROFS, EDQUOT } = constants.errno;
const DELAY_MS = 3_000;
/**
 * Number of delayed calls of a delay that lasts for ever: then every waiting call has waited for several, and
 * the run still ends.
 */
const DELAYED_CALLS_MAX = 6;

/** The kinds of faults by their names. */
const KINDS: Readonly<Record<string, Fault & { readonly times?: number }>> = {
  EIO: { errno: EIO },
  ENOSPC: { errno: ENOSPC },
  EROFS: { errno: EROFS },
  EDQUOT: { errno: EDQUOT },
  short: { short: true },
  delay: { delayMs: DELAY_MS, times: DELAYED_CALLS_MAX },
};

/** One fault at one call of a scene. */
export interface FaultPoint {
  readonly scene: Scene;
  /** When the process is attacked: while it opens the store, or while it works. */
  readonly mode: "open" | "operate";
  readonly call: FollowedCall;
  readonly kind: string;
  readonly fault: Fault & { readonly times?: number };
  readonly forever: boolean;
}

/** A point in words. */
export function wordsOf({ scene, mode, call, kind, forever }: FaultPoint): string {
  const names = scene.operations.map(({ name }) => name).join(", ");
  return `${kind} ${forever ? "for ever from" : "once at"} call ${call.n}, ${call.name} ${kindOf(call)}, ${mode === "open" ? "when opened after" : "in"} ${names}`;
}

/** True when a call puts something on stable storage. */
export const isFlush = ({ name }: FollowedCall): boolean => name === "fsync" || name === "fdatasync";

/** Every fault of every call. */
export function faultPoints(
  scene: Scene,
  mode: FaultPoint["mode"],
  calls: readonly FollowedCall[],
): FaultPoint[] {
  const points: FaultPoint[] = [];
  for (const call of calls) {
    if (call.path === "(told)") continue;
    for (const [kind, fault] of Object.entries(KINDS)) {
      if (kind === "short" && (call.length ?? 0) < 2) continue;
      for (const forever of [false, true]) points.push({ scene, mode, call, kind, fault, forever });
    }
  }
  return points;
}

/**
 * Returns the points in a random order in which every kind of call meets every kind of fault before any does
 * so again.
 */
export function ordered(random: SeededRandom, points: readonly FaultPoint[]): FaultPoint[] {
  const drawn = points.map((point) => ({ point, at: random.next(), round: 0 })).sort((a, b) => a.at - b.at);
  const met = new Map<string, number>();
  for (const each of drawn) {
    const { mode, call, kind, forever } = each.point;
    const key = `${mode} ${call.name} ${kindOf(call)} ${kind} ${forever}`;
    each.round = met.get(key) ?? 0;
    met.set(key, each.round + 1);
  }
  return drawn.sort((a, b) => a.round - b.round || a.at - b.at).map(({ point }) => point);
}
