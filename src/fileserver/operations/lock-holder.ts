// Who holds a lock, as it is kept with it: a person, and the credential with its folder.
import type { Holder } from "#security/policy/decide.ts";
import type { HeldLock } from "#storage/contract/locks.ts";
import type { Caller } from "./caller.ts";

/** Seconds for which a lock holds without a refresh, at most. */
export const LOCK_MAX_SECONDS = 3_600;

/** Between a credential and the folder that bounds it; neither has a space. */
const BELOW = " below ";

/** Who takes a lock. */
export type LockTaker = Pick<Caller, "credential" | "identity">;

/** What is kept of the credential that takes a lock; empty for a sign-in. */
export function lockCredential({ credential, identity }: LockTaker): string {
  const folderId = identity.limit?.folderId;
  return folderId === undefined ? credential : `${credential}${BELOW}${folderId}`;
}

/** The credential behind a lock, and the person within its bounds. Only credentials that write take locks. */
export function holderOf(lock: Pick<HeldLock, "credential" | "username">): {
  readonly credential: string;
  readonly holder: Holder;
} {
  const { username } = lock;
  if (lock.credential === "") return { credential: "", holder: { username } };
  const [credential = "", folderId] = lock.credential.split(BELOW, 2);
  return { credential, holder: { username, limit: { access: "write", folderId } } };
}
