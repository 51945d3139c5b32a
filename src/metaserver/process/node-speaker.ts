// Proves that the caller of a control call may speak for a node (spec 5.6, D19, D20).
import { X509Certificate } from "node:crypto";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import type { Logger } from "#base/log.ts";
import type { LogSampler } from "#base/log-sampler.ts";
import { networkOf } from "#base/network.ts";
import { checkedNodeId } from "#base/node-id.ts";
import type { Speaker } from "#metaserver/directory/node-caller.ts";
import { judgeCertificate } from "#security/identity/certificate-rule.ts";
import type { CallHead } from "#wire/grpc/call-gate.ts";
import type { Peer } from "#wire/grpc/handler.ts";

/** Dependencies of the rule. */
export interface NodeSpeakerDeps {
  /** Mock mode: control calls need no certificate (spec 5.6). */
  readonly mock: boolean;
  readonly clock: Clock;
  readonly log: Logger;
  /** Limits the log lines of refused control calls. */
  readonly refusals: LogSampler;
  /** True for the serial number (hex) of a revoked certificate; undefined when there is no list. */
  readonly isRevoked?: ((serial: string) => boolean) | undefined;
}

/** A certificate that may make control calls. */
export interface NodeCertificate {
  /** The node that it names; undefined for one that names none. */
  readonly nodeId: string | undefined;
  readonly keyFingerprint: string;
  /** DER. */
  readonly raw: Uint8Array;
}

/**
 * Proves that the caller may speak for the node: by a certificate that names it, or by one without a node's
 * name whose key the metadata store compares (D20). Throws CLIENT_CERT_REQUIRED, and BAD_ARGUMENT for an
 * invalid node id.
 */
export function speakerFor(fsId: string, context: CallHead, deps: NodeSpeakerDeps): Speaker {
  if (deps.mock) {
    checkedNodeId(fsId);
    return { kind: "mock" };
  }
  const { nodeId, keyFingerprint } = verdictOf(context, deps);
  checkedNodeId(fsId);
  if (nodeId === undefined) return { kind: "generic", keyFingerprint };
  if (nodeId !== fsId) {
    refuse(context, deps, "speaks for another node");
  }
  return { kind: "named", keyFingerprint };
}

/** The caller's certificate, in mock mode too. Throws CLIENT_CERT_REQUIRED for one without control calls. */
export function requireCertificate(context: CallHead, deps: NodeSpeakerDeps): NodeCertificate {
  return verdictOf(context, deps);
}

/** True for a peer whose certificate may make control calls; logs nothing. */
export function mayControl(peer: Peer, { clock, isRevoked }: NodeSpeakerDeps): boolean {
  const shown = peer.certificate;
  if (shown === undefined || !shown.authorized) return false;
  const { allowed } = judgeCertificate({ certificate: shown.raw, authorized: true }, clock.wallMs());
  return allowed && isRevoked?.(new X509Certificate(shown.raw).serialNumber) !== true;
}

function verdictOf(context: CallHead, deps: NodeSpeakerDeps): NodeCertificate {
  const shown = context.peer.certificate;
  const { allowed, nodeId, keyFingerprint, reason } = judgeCertificate(
    { certificate: shown?.raw, authorized: shown?.authorized === true, problem: shown?.problem },
    deps.clock.wallMs(),
  );
  if (!allowed || keyFingerprint === undefined || shown === undefined) {
    refuse(context, deps, reason ?? "is not allowed");
  }
  if (deps.isRevoked?.(new X509Certificate(shown.raw).serialNumber) === true) {
    refuse(context, deps, "has been revoked");
  }
  return { nodeId, keyFingerprint, raw: shown.raw };
}

/** Refuses with a reason for the node's operator, which reveals only the certificate's content. */
function refuse(context: CallHead, deps: NodeSpeakerDeps, reason: string): never {
  const { address } = context.peer;
  const sampled = deps.refusals.take(`${reason} ${networkOf(address)}`);
  if (sampled !== undefined) {
    deps.log.warn("control_call_refused", {
      method: context.method.name,
      peer: address,
      certificate: reason,
      ...sampled,
    });
  }
  throw new GroveError(
    "CLIENT_CERT_REQUIRED",
    `a cluster control call needs a client certificate of this cluster that may speak for this node; the one shown ${reason}`,
    { metadata: { certificate: reason } },
  );
}
