// The limit of users whom nodes may list to the console, all nodes together (M-05).
import { CONSOLE_USERS_MAX } from "./cluster-state.ts";

/**
 * Users near their quota that the console keeps beside CONSOLE_USERS_MAX, because alerts do not depend on the
 * lists (spec 2.7).
 */
const CONSOLE_NEAR_USERS_MAX = 100_000;
/** Users that every node may list, however many the others have. */
export const CONSOLE_USERS_PER_NODE_FREE = 200;

/**
 * Limits the users of all nodes together, so that a malicious node cannot fill the memory. Users near their
 * quota count apart.
 */
export class ListedUsersLimit {
  /** For users near their quota, so that the lists of all users leave room for alerts. */
  readonly near: ListedUsersLimit | undefined;
  readonly #max: number;
  readonly #claims = new Map<string, number>();
  #total = 0;

  constructor(max: number = CONSOLE_USERS_MAX, nearMax: number | null = CONSOLE_NEAR_USERS_MAX) {
    this.#max = max;
    this.near = nearMax === null ? undefined : new ListedUsersLimit(nearMax, null);
  }

  /** Claims room for a node's users in place of its earlier claim; false, and no claim, without room. */
  claim(nodeId: string, users: number): boolean {
    const before = this.#claims.get(nodeId) ?? 0;
    const fits = users <= CONSOLE_USERS_PER_NODE_FREE || this.#total - before + users <= this.#max;
    const granted = fits ? users : 0;
    this.#claims.set(nodeId, granted);
    this.#total += granted - before;
    return fits;
  }

  /** Releases a node's room. */
  release(nodeId: string): void {
    this.#total -= this.#claims.get(nodeId) ?? 0;
    this.#claims.delete(nodeId);
    this.near?.release(nodeId);
  }
}
