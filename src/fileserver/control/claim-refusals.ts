// Refusals of a user whose root the MetaServer does not place, or does not say where it lives.
import { GroveError } from "#base/errors.ts";
import { HEARTBEAT_INTERVAL_MS, NODE_LEASE_MS } from "#base/limits.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { reasonOf } from "./refusal-reason.ts";
import type { RestoredFrom } from "./restored-from.ts";

/** The refusal of a new user while another process holds this node's id: to wait would not help. */
export function heldOff(id: string): GroveError {
  return new GroveError(
    "STARTING",
    `this server (${id}) was started a moment ago and waits for the one before it to be given up, up to ${NODE_LEASE_MS / 1_000} s after that one ` +
      "has stopped; whoever has files here can use them meanwhile",
    { metadata: { retry_after_ms: String(HEARTBEAT_INTERVAL_MS) } },
  );
}

/** The refusal of a user whose root was lost, with this node's disk or with the newest metadata store (D19). */
export function lostRoot(restored: RestoredFrom | undefined, cause: unknown): GroveError {
  const taken = new Date(restored?.takenAtMs ?? 0).toISOString().slice(0, 16).replace("T", " ");
  const where =
    restored === undefined
      ? "the cluster knows files of yours on this server, which does not have them"
      : `this server was restored from its backup of ${taken} UTC, and your files are not in it`;
  return new GroveError(
    "ROOT_LOST",
    `${where}; no empty root is made in their place without the operator's word`,
    { cause },
  );
}

/** The refusal of a new user when the MetaServer gave no answer, or one about the node. */
export function unreachable(error: unknown): GroveError {
  if (reasonOf(error) === "TOKEN_REJECTED" && error instanceof StatusError) {
    return new GroveError("TOKEN_REJECTED", error.message, { metadata: { claim: "sub" }, cause: error });
  }
  if (reasonOf(error) === "STARTING" && error instanceof StatusError) {
    // The user's root may lie on a node that has not listed it yet: the message names it.
    const metadata = { retry_after_ms: String(HEARTBEAT_INTERVAL_MS) };
    return new GroveError("STARTING", error.message, { metadata, cause: error });
  }
  const isOurFault = error instanceof StatusError && error.code !== Code.UNAVAILABLE;
  return new GroveError(
    "STORE_UNAVAILABLE",
    isOurFault
      ? "the metaserver did not say where your root lives; try again, or ask the operator"
      : "the metaserver cannot be reached, so that a first sign-in has to wait; try again",
    { cause: error },
  );
}
