// Shared by the tests of the ledger: a ledger over plain variables, and the usage of a root.
import { type ErrorCode, isGroveError } from "#base/errors.ts";
import { type Effect, QuotaLedger, type RootUsage } from "./ledger.ts";

/** Bytes of a root. */
export const usage = (liveBytes: number, trashBytes = 0, stagingBytes = 0): RootUsage => ({
  liveBytes,
  trashBytes,
  stagingBytes,
  liveInodes: 0,
  trashInodes: 0,
});

/** Effect of a change on a root. */
export const added = (usedDeltaBytes: number, inodeDelta = 0, after = usage(0)): Effect => ({
  usage: after,
  usedDeltaBytes,
  inodeDelta,
});

/** A ledger over plain variables: quotas by user, free bytes, a reserve of 1000. */
export const world = (
  quota: bigint,
  free = 10n ** 15n,
): { readonly state: { quota: bigint; free: bigint; inodes: number }; readonly ledger: QuotaLedger } => {
  const state = { quota, free, inodes: 1_000_000 };
  const ledger = new QuotaLedger({
    quotaBytes: () => state.quota,
    inodeLimit: () => state.inodes,
    freeBytes: () => state.free,
    reserveBytes: 1_000n,
  });
  return { state, ledger };
};

/** Whether an error is this refusal. */
export const refusal =
  (code: ErrorCode): ((error: unknown) => boolean) =>
  (error) =>
    isGroveError(error, code);
