// One `grove up` at a time chooses ports and has its processes take them: two at once would choose the same ones.
import { setTimeout as sleep } from "node:timers/promises";
import { holdName } from "./held-name.ts";

const NAME = "grove-up-ports";
const WAIT_MAX_MS = 60_000;
const LOOK_INTERVAL_MS = 100;

/** Who waits. */
export interface Waiting {
  /** Told once, if there is somebody to wait for. */
  readonly onWait: () => void;
  /** Whether the turn is not wanted any more. */
  readonly isStopping: () => boolean;
}

/**
 * Waits for this process's turn and resolves with what ends it. After 60 s, and where there are no abstract sockets, it goes on without:
 * then a port that somebody else has taken is named by the process that wanted it.
 */
export async function takePortTurn({ onWait, isStopping }: Waiting): Promise<() => void> {
  const giveUpAtMs = performance.now() + WAIT_MAX_MS;
  for (let tries = 0; performance.now() < giveUpAtMs && !isStopping(); tries++) {
    const end = await holdName(NAME);
    if (end !== undefined) return end;
    if (tries === 0) onWait();
    await sleep(LOOK_INTERVAL_MS);
  }
  return () => undefined;
}
