// Certificates of nodes: the first by a one-time token, each next one by the one before (D20).
import { createPublicKey, type KeyObject, X509Certificate } from "node:crypto";
import type { AuditSink } from "#base/audit-act.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { checkedNodeId } from "#base/node-id.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import { requireNeighbour, VERSION } from "#base/version.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import {
  type Authority,
  checkNodeRequest,
  type NodeCertificateRequest,
} from "#security/authority/authority.ts";
import { type Grant, JoinTokens, parseJoinToken } from "#security/authority/join-tokens.ts";
import { signAgain } from "#security/authority/sign-again.ts";
import { publicKeyFingerprint } from "#security/identity/certificate-rule.ts";
import { judgeDoorCertificate } from "#security/identity/door-certificate.ts";
import type { CallContext, ServiceHandlers } from "#wire/grpc/handler.ts";
import type { JoinNodeRequest, MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { doorSpeakerFor } from "./door-speaker.ts";
import { CERTIFICATE_NAMES_MAX } from "./flag-values.ts";
import { type NodeSpeakerDeps, requireCertificate } from "./node-speaker.ts";

/** Wrong join tokens per address and minute; more are answered RATE_LIMITED. */
export const JOIN_FAILURES_PER_MINUTE_PER_ADDRESS = 5;
/** Renewals of one node's certificate per hour. */
export const RENEWALS_PER_HOUR_PER_NODE = 20;

/** Dependencies of the routes. */
export interface EnrolmentRoutesDeps extends NodeSpeakerDeps {
  /** The cluster's authority; undefined on a MetaServer without -ca_dir, which signs nothing. */
  readonly authority: Authority | undefined;
  /** The metadata store: a removed node comes back by joining. */
  readonly directory: Pick<Directory, "readmitNode" | "requireNotRemoved">;
  readonly audit: AuditSink;
  /** True for a DNS name or address of this MetaServer, which no other node gets by default. */
  readonly isOwnName: (name: string) => boolean;
}

/** The handlers of joining and renewing. */
export type EnrolmentRoutes = Pick<ServiceHandlers<typeof MetaServer>, "joinNode" | "renewCertificate">;

/** Makes the handlers. */
export function enrolmentRoutes(deps: EnrolmentRoutesDeps): EnrolmentRoutes {
  const { authority, clock, audit, log } = deps;
  const failures = new FailureGate(deps);
  const renewals = new SlidingWindow(clock, { count: RENEWALS_PER_HOUR_PER_NODE, windowMs: 3_600_000 });
  const oneByOne = inTurn();
  const tokens = authority === undefined ? undefined : new JoinTokens(authority.folder, clock);
  return {
    async joinNode(request, context) {
      if (authority === undefined || tokens === undefined) throw signsNothing();
      if (!context.peer.encrypted) {
        throw new GroveError(
          "BAD_ARGUMENT",
          "a node joins over TLS only: its token would be read on the way",
        );
      }
      const { address } = context.peer;
      const { token, granted } = await failures.watch(address, async () => {
        const shown = parseJoinToken(request.token);
        return { token: shown, granted: await tokens.check(shown) };
      });
      requireNeighbour({ name: "the new node", version: request.version }, "this MetaServer");
      const { order, certificate } = await oneByOne(async () => {
        const checked = await checkedOrder(request, granted, deps, authority);
        // First: while the store is away the token stays good for another try.
        const key = publicKeyFingerprint(keyOf(checked.publicKey));
        await deps.directory.readmitNode(checked.request.id, key);
        await tokens.use(token);
        return {
          order: checked,
          certificate: await authority.signNodeCertificate(checked.publicKey, checked.request),
        };
      });
      const { id, names = [] } = order.request;
      log.warn("node_joined", { node: id, peer: address, names: names.join(" ") });
      audit({ act: "node.join", actor: "node", subject: id, detail: { address, names: names.join(" ") } });
      return { nodeId: id, certificate, serverVersion: VERSION };
    },

    async renewCertificate(request, context) {
      const door = judgedDoor(context, deps);
      if (door !== undefined) {
        if (authority === undefined) throw signsNothing();
        const { id } = doorSpeakerFor(context, deps);
        const waitMs = renewals.take(`${id}.door`);
        if (waitMs > 0) throw tooMany("this certificate is renewed too often", waitMs);
        log.info("certificate_renewed", { door: id, peer: context.peer.address });
        const certificate = await signAgain(authority, door);
        const detail = { role: "door", address: context.peer.address };
        audit({ act: "certificate.renew", actor: "node", subject: id, detail });
        return { certificate };
      }
      const { nodeId, keyFingerprint, raw } = requireCertificate(context, deps);
      if (authority === undefined) throw signsNothing();
      if (nodeId === undefined || (request.nodeId !== "" && request.nodeId !== nodeId)) {
        throw new GroveError(
          "CLIENT_CERT_REQUIRED",
          "only a certificate that names one node can be renewed, and for that node",
        );
      }
      // A node may wait long before it registers first, so it need not be known.
      await deps.directory.requireNotRemoved(nodeId, { kind: "named", keyFingerprint });
      const waitMs = renewals.take(nodeId);
      if (waitMs > 0) throw tooMany("this certificate is renewed too often", waitMs);
      const certificate = await signAgain(authority, raw);
      log.info("certificate_renewed", { node: nodeId, peer: context.peer.address });
      const detail = { role: "fileserver", address: context.peer.address };
      audit({ act: "certificate.renew", actor: "node", subject: nodeId, detail });
      return { certificate };
    },
  };
}

/** The certificate of a caller that is a door; undefined for all others. */
function judgedDoor(context: CallContext, { clock }: EnrolmentRoutesDeps): Uint8Array | undefined {
  const shown = context.peer.certificate;
  const peer = { certificate: shown?.raw, authorized: shown?.authorized === true };
  return typeof judgeDoorCertificate(peer, clock.wallMs()) === "string" ? undefined : shown?.raw;
}

/** Checks everything before the token is used up, so that an operator's slip does not cost it. */
async function checkedOrder(
  request: JoinNodeRequest,
  granted: Grant,
  deps: EnrolmentRoutesDeps,
  authority: Authority,
): Promise<{ readonly publicKey: Uint8Array; readonly request: NodeCertificateRequest }> {
  const id = checkedNodeId(request.nodeId === "" ? (granted.id ?? "") : request.nodeId);
  if (granted.id !== undefined && granted.id !== id) {
    throw new GroveError("BAD_ARGUMENT", `this token is for another node id than ${id}`);
  }
  const { names, addresses } = request;
  if (names.length > CERTIFICATE_NAMES_MAX || addresses.length > CERTIFICATE_NAMES_MAX) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `a certificate has at most ${CERTIFICATE_NAMES_MAX} names and as many addresses`,
    );
  }
  if (names.some((name) => name.toLowerCase() === "fileserver")) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "the name 'fileserver' would let the certificate speak for no node in particular",
    );
  }
  const hosts = [...names, ...addresses];
  const { hosts: allowed } = granted;
  const foreign = hosts.find((host) => allowed?.includes(host.toLowerCase()) === false);
  if (foreign !== undefined) {
    throw new GroveError("BAD_ARGUMENT", `this token is not for a node that is reached as ${foreign}`);
  }
  const mayShareHost = granted.id !== undefined || allowed !== undefined;
  const own = mayShareHost ? undefined : hosts.find((host) => deps.isOwnName(host));
  if (own !== undefined) {
    throw new GroveError(
      "BAD_ARGUMENT",
      `${own} is where this MetaServer is reached: a node on the same machine needs a token for its id (grove node token -id ${id})`,
    );
  }
  const publicKey = await requestedKey(request.certificateRequest);
  checkNodeRequest(publicKey, { id, names, addresses });
  if (granted.id === undefined) await requireFreeId(id, publicKey, deps, authority);
  return { publicKey, request: { id, names, addresses } };
}

async function requestedKey(pem: string): Promise<Uint8Array> {
  try {
    const { readCertificateRequest } = await import("#security/authority/certificate-maker.ts");
    return await readCertificateRequest(pem);
  } catch (cause) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "certificate_request is no PKCS #10 request that its own key has signed",
      { cause },
    );
  }
}

function keyOf(spki: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.from(spki), format: "der", type: "spki" });
}

/** A token without an id must not bring a second holder of a used one. */
async function requireFreeId(
  id: string,
  publicKey: Uint8Array,
  deps: EnrolmentRoutesDeps,
  authority: Authority,
): Promise<void> {
  const nowMs = deps.clock.wallMs();
  const key = keyOf(publicKey);
  for (const record of await authority.issued.list(nowMs)) {
    if (record.id !== id || record.notAfterWallMs < nowMs || deps.isRevoked?.(record.serial) === true)
      continue;
    if (new X509Certificate(record.certificatePem).publicKey.equals(key)) continue;
    throw new GroveError(
      "NODE_ID_HELD",
      `${id} has a certificate already: choose another id, or make a token for this one (grove node token -id ${id})`,
      { metadata: { fs_id: id } },
    );
  }
}

/** Limits guesses of tokens by address; other addresses join undisturbed. */
class FailureGate {
  readonly #failures: SlidingWindow;
  readonly #log: NodeSpeakerDeps["log"];

  constructor(deps: NodeSpeakerDeps) {
    this.#log = deps.log;
    this.#failures = new SlidingWindow(deps.clock, {
      count: JOIN_FAILURES_PER_MINUTE_PER_ADDRESS,
      windowMs: 60_000,
    });
  }

  /**
   * Counts refusals, and counts before the work, so that concurrent attempts are no more than sequential
   * ones. Throws RATE_LIMITED before any token is compared.
   */
  async watch<T>(address: string, work: () => Promise<T>): Promise<T> {
    const waitMs = this.#failures.take(address);
    if (waitMs > 0) throw tooMany("too many join tokens were wrong", waitMs);
    try {
      const result = await work();
      this.#failures.giveBack(address);
      return result;
    } catch (error) {
      const reason = isGroveError(error) ? error.code : "INTERNAL";
      this.#log.warn("join_refused", { peer: address, reason });
      throw error;
    }
  }
}

/** Runs one work after another, so that two tokens never bring the same free id at once. */
function inTurn(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work, work);
    last = next.catch(() => undefined);
    return next;
  };
}

function tooMany(what: string, waitMs: number): GroveError {
  return new GroveError("RATE_LIMITED", `${what}: try again in a minute`, {
    metadata: { retry_after_ms: String(waitMs) },
  });
}

function signsNothing(): GroveError {
  return new GroveError(
    "NOT_IMPLEMENTED",
    "this MetaServer has no authority at hand (-ca_dir), so it signs no certificates",
  );
}
