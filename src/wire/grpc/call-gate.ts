// Who judges callers, and by what: a call's headers, before any of its body is read.

import type { Metadata } from "#wire/framing/metadata.ts";
import type { CalledMethod, Peer } from "./call-context.ts";
import type { Standing } from "./standing.ts";

/** What is known of a call by its headers alone. */
export interface CallHead {
  readonly method: CalledMethod;
  readonly metadata: Metadata;
  readonly peer: Peer;
}

/** Judges callers. A server without one takes every caller for a user by the name of its network. */
export interface CallGate {
  /** The standing of a call. Throws what refuses it: its body is then never read. */
  judge(head: CallHead): Standing;
  /** Hears of a call that was refused before its body was read; returns headers (name, value, …) that go out with the status. */
  refused(head: CallHead, error: unknown): readonly string[];
  /** True for a peer whose certificate is a node's: it has a reserve of connections. */
  isNode(peer: Peer): boolean;
}
