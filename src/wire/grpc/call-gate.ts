// The port that judges callers by a call's headers, before any of its body is read.

import type { Metadata } from "#wire/framing/metadata.ts";
import type { CalledMethod, Peer } from "./call-context.ts";
import type { Standing } from "./standing.ts";

/** The facts of a call in its headers. */
export interface CallHead {
  readonly method: CalledMethod;
  readonly metadata: Metadata;
  readonly peer: Peer;
  /** Milliseconds that the client gives the call. */
  readonly timeoutMs?: number | undefined;
}

/** Judges callers. A server without a gate takes every caller for a user with the name of its network. */
export interface CallGate {
  /**
   * The standing of a call, or a promise for it. Throws or rejects with the refusal, and then the body is
   * never read.
   */
  judge(head: CallHead): Standing | Promise<Standing>;
  /** Called with the standing of a call that does not begin: its client has left, or it is refused. */
  left?(standing: Standing): void;
  /** Called for a call refused before its body; returns headers (name, value, …) for the status. */
  refused(head: CallHead, error: unknown): readonly string[];
  /** True for a peer with a node's certificate, which has reserved connections. */
  isNode(peer: Peer): boolean;
}
