// Proves that a call comes from a door, and for which person's address.
import { PERSON_ADDRESS_HEADER, personAddressFrom } from "#base/door-call.ts";
import { GroveError } from "#base/errors.ts";
import { networkOf } from "#base/network.ts";
import { judgeDoorCertificate } from "#security/identity/door-certificate.ts";
import type { CallHead } from "#wire/grpc/call-gate.ts";
import type { NodeSpeakerDeps } from "./node-speaker.ts";

/** A door that calls. */
export interface DoorSpeaker {
  readonly id: string;
  /** SHA-256 of its public key in hex. */
  readonly key: string;
  /** Address of the person for whom it calls; its own where it tells none. */
  readonly address: string;
}

/** What stands for the certificate of a door in mock mode without TLS, where nothing is proven. */
const MOCK_DOOR = { id: "mock", key: "mock" } as const;

/** The door behind a call. Throws CLIENT_CERT_REQUIRED for callers without a door's certificate. */
export function doorSpeakerFor(context: CallHead, deps: NodeSpeakerDeps): DoorSpeaker {
  const { peer, metadata } = context;
  const address = personAddressFrom(metadata.get(PERSON_ADDRESS_HEADER)) ?? peer.address;
  if (deps.mock && !peer.encrypted) return { ...MOCK_DOOR, address };
  const door = judgeDoorCertificate(
    {
      certificate: peer.certificate?.raw,
      authorized: peer.certificate?.authorized === true,
      problem: peer.certificate?.problem,
    },
    deps.clock.wallMs(),
  );
  if (typeof door === "string") return refuse(context, deps, door);
  if (deps.isRevoked?.(door.certificate.serialNumber) === true)
    return refuse(context, deps, "has been revoked");
  return { id: door.id, key: door.key, address };
}

function refuse(context: CallHead, deps: NodeSpeakerDeps, reason: string): never {
  const { address } = context.peer;
  const sampled = deps.refusals.take(`door ${reason} ${networkOf(address)}`);
  if (sampled !== undefined) {
    const fields = { method: context.method.name, peer: address, certificate: reason };
    deps.log.warn("door_call_refused", { ...fields, ...sampled });
  }
  throw new GroveError(
    "CLIENT_CERT_REQUIRED",
    `this call needs a door's client certificate of this cluster; the one shown ${reason}`,
    { metadata: { certificate: reason } },
  );
}
