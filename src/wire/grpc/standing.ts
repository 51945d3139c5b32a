// What a caller has proven when a call's headers have come, before any of its body is taken.

/**
 * On whose account a call runs. "unproven" callers share a small part of everything, by network; "user" and "node" have shares of
 * their own, and the places of nodes are taken by nobody else.
 */
export interface Standing {
  readonly kind: "unproven" | "user" | "node";
  /** Whose shares are taken: a user, a node, or a network (an IPv4 address, the /64 of an IPv6 one). */
  readonly party: string;
  /** What the gate found, for the handlers: such as the session behind the token. */
  readonly proof?: unknown;
}

/** The standing of callers who have proven nothing. */
export function unproven(network: string): Standing {
  return { kind: "unproven", party: network };
}
