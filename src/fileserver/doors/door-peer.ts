// Recognises the calls of doors by their certificates, and for which person's address they come.
import type { Clock } from "#base/clock.ts";
import { PERSON_ADDRESS_HEADER, personAddressFrom } from "#base/door-call.ts";
import { judgeDoorCertificate } from "#security/identity/door-certificate.ts";
import type { CallHead } from "#wire/grpc/call-gate.ts";
import type { Peer } from "#wire/grpc/handler.ts";

/** The door behind a call. */
export interface CallingDoor {
  readonly id: string;
  /** SHA-256 of its public key in hex. */
  readonly key: string;
  /** Address of the person for whom it calls; its own where it tells none. */
  readonly address: string;
}

interface KnownPeer {
  readonly id: string;
  readonly key: string;
  readonly endsWallMs: number;
}

/** Judges the certificate of each connection once. */
export class DoorPeers {
  readonly #clock: Pick<Clock, "wallMs">;
  readonly #mock: boolean;
  readonly #known = new WeakMap<Peer, KnownPeer | "none">();

  /** In mock mode without TLS, where nothing is proven, a call that tells an address is a door's. */
  constructor(clock: Pick<Clock, "wallMs">, mock: boolean) {
    this.#clock = clock;
    this.#mock = mock;
  }

  /** The door; undefined for every other caller, whose metadata tells of nobody else. */
  of({ peer, metadata }: Pick<CallHead, "metadata" | "peer">): CallingDoor | undefined {
    const isMock = this.#mock && !peer.encrypted;
    // Every call of a user comes here.
    if (peer.certificate === undefined && !isMock) return undefined;
    const told = personAddressFrom(metadata.get(PERSON_ADDRESS_HEADER));
    if (peer.certificate === undefined) {
      return told === undefined ? undefined : { id: "mock", key: "mock", address: told };
    }
    let known = this.#known.get(peer);
    if (known === undefined) {
      known = this.#judge(peer);
      this.#known.set(peer, known);
    }
    if (known === "none" || known.endsWallMs <= this.#clock.wallMs()) return undefined;
    return { id: known.id, key: known.key, address: told ?? peer.address };
  }

  #judge({ certificate }: Peer): KnownPeer | "none" {
    if (certificate === undefined) return "none";
    const { raw, authorized, problem } = certificate;
    const door = judgeDoorCertificate({ certificate: raw, authorized, problem }, this.#clock.wallMs());
    if (typeof door === "string") return "none";
    return { id: door.id, key: door.key, endsWallMs: door.certificate.validToDate.getTime() };
  }
}
