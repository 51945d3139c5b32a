// The proven identity of a caller from a call's headers, before any of its body is taken.

/**
 * The account of a call. "unproven" callers share a small part of everything, by network. Users and nodes
 * have shares of their own, and nodes also reserved places.
 */
export interface Standing {
  readonly kind: "unproven" | "user" | "node";
  /**
   * The party whose shares are used: a user, a node, or a network (an IPv4 address, the /64 of an IPv6 one).
   */
  readonly party: string;
  /** The gate's finding for the handlers, such as the session of the token. */
  readonly proof?: unknown;
}

/** The standing of unproven callers. */
export function unproven(network: string): Standing {
  return { kind: "unproven", party: network };
}
