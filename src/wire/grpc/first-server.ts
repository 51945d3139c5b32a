// Finds the first of several addresses that answers, with a short wait for silent ones.
import { Code, StatusError } from "#wire/framing/status.ts";
import { Transport, type TransportDeps } from "./transport.ts";

/** After this silence the next server is tried in parallel; the first answer wins. */
const HEAD_START_MS = 1_000;

/** How the addresses are tried. */
export interface Search {
  readonly addresses: readonly string[];
  /** Index of the first address to try; the others follow in order, round to the one before it. */
  readonly from: number;
  readonly deps: TransportDeps;
  /** Receives the function that gives the search up. */
  readonly started: (giveUp: () => void) => void;
}

/** Connects to the first address that answers; returns its index. Rejects with the last UNAVAILABLE. */
export function connectFirst(
  search: Search,
): Promise<{ readonly transport: Transport; readonly at: number }> {
  const { addresses, from, deps } = search;
  return new Promise((resolve, reject) => {
    const giveUps = new Set<() => void>();
    let begun = 0;
    let failed = 0;
    let isOver = false;
    let cancelTimer: (() => void) | undefined;
    const finish = (): void => {
      isOver = true;
      cancelTimer?.();
      for (const giveUp of giveUps) giveUp();
    };
    const begin = (): void => {
      cancelTimer?.();
      if (isOver || begun >= addresses.length) return;
      const at = (from + begun++) % addresses.length;
      let ownGiveUp: (() => void) | undefined;
      Transport.connect(addresses[at] as string, deps, (giveUp) => {
        ownGiveUp = giveUp;
        giveUps.add(giveUp);
      }).then(
        (transport) => {
          if (ownGiveUp !== undefined) giveUps.delete(ownGiveUp);
          if (isOver) transport.destroy();
          else if (!transport.isUsable) missed(undefined);
          else {
            finish();
            resolve({ transport, at });
          }
        },
        (error: unknown) => {
          if (ownGiveUp !== undefined) giveUps.delete(ownGiveUp);
          missed(error);
        },
      );
      cancelTimer = deps.clock.after(HEAD_START_MS, begin);
    };
    const missed = (error: unknown): void => {
      if (isOver) return;
      failed++;
      if (failed < addresses.length) {
        begin();
        return;
      }
      finish();
      reject(error instanceof StatusError ? error : new StatusError(Code.UNAVAILABLE, "no connection"));
    };
    search.started(() => {
      if (isOver) return;
      finish();
      reject(new StatusError(Code.UNAVAILABLE, "given up"));
    });
    begin();
  });
}
