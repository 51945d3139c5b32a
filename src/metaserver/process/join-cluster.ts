// A new node's side of joining: checks the authority's fingerprint, sends the request, stores the answer.
import { createPrivateKey, createPublicKey, X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import type { Clock } from "#base/clock.ts";
import { GroveError, isGroveError } from "#base/errors.ts";
import { checkedNodeId, parseHostPort } from "#base/node-id.ts";
import { TLS_POLICY } from "#base/tls-policy.ts";
import { VERSION } from "#base/version.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import type { KeyPair } from "#security/authority/certificate-maker.ts";
import { parseJoinToken } from "#security/authority/join-tokens.ts";
import {
  type JoinedNode,
  joinedTlsPaths,
  readJoinedNode,
  writeJoinedNode,
} from "#security/authority/joined-node.ts";
import {
  certificateEndMs,
  checkTlsMaterial,
  readTlsMaterial,
  type TlsPaths,
} from "#security/authority/tls-material.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { errorCodeOf, REASON_TRAILER } from "#wire/proto/status-table.ts";

const CONNECT_TIMEOUT_MS = 10_000;
const CALL_TIMEOUT_MS = 30_000;
/** Certificates that a server may show in a row, the authority's included. */
const CHAIN_MAX = 10;
const NODE_USES = ["server", "client"] as const;

/** The order of a joining node. */
export interface JoinOrder {
  readonly dataFolder: string;
  readonly metaservers: readonly string[];
  readonly token: string;
  readonly id: string | undefined;
  /** Used when neither order nor token names an id. */
  readonly fallbackId: string;
  readonly advertise: string | undefined;
  /** Further names and addresses for the certificate. */
  readonly hosts: readonly string[];
  /** Joins although the folder has a good certificate. */
  readonly again: boolean;
  readonly clock: Pick<Clock, "wallMs">;
}

/** The outcome of joining. */
export interface Joined {
  readonly id: string;
  readonly paths: TlsPaths;
  readonly endsWallMs: number;
}

/**
 * Joins: when this resolves, certificate, key, authority and cluster address are in the data folder. The key
 * is made here and never sent. Throws the MetaServer's refusals, STORE_UNAVAILABLE when none answers, and
 * CLUSTER_MISMATCH for another cluster, to which nothing is sent.
 */
export async function joinCluster(order: JoinOrder): Promise<Joined> {
  const token = parseJoinToken(order.token);
  const id = checkedNodeId(order.id ?? token.id ?? order.fallbackId);
  const paths = joinedTlsPaths(order.dataFolder);
  if (!order.again) await requireFresh(order, paths);
  const hosts = [
    ...order.hosts,
    ...(order.advertise === undefined ? [] : [parseHostPort(order.advertise).host]),
  ];
  const { authorityPem, certificate, keyPem } = await fromAny(order.metaservers, async (server) => {
    const shown = await authorityOf(server, token.fingerprint);
    // Nothing is made in the folder for a wrong server.
    makePrivateFolder(join(order.dataFolder, "tls"));
    for (const path of [paths.cert, paths.key, paths.ca]) await removeLeftovers(path);
    const key = await keyOf(paths.key);
    const reply = await askFor({ server, authorityPem: shown, id, hosts, token: order.token, key });
    return { authorityPem: shown, certificate: reply.certificate, keyPem: key.pem };
  });
  checkTlsMaterial({ cert: certificate, key: keyPem, ca: authorityPem }, paths, {
    nowWallMs: order.clock.wallMs(),
    uses: NODE_USES,
  });
  await writeFileAtomic(paths.ca, authorityPem, { mode: 0o644 });
  await writeFileAtomic(paths.cert, certificate, { mode: 0o644 });
  const node: JoinedNode = { id, metaservers: order.metaservers, advertise: order.advertise };
  await writeJoinedNode(order.dataFolder, node);
  return { id, paths, endsWallMs: certificateEndMs(certificate) };
}

async function requireFresh(order: JoinOrder, paths: TlsPaths): Promise<void> {
  const known = await readJoinedNode(order.dataFolder).catch(() => undefined);
  const isGood = await readTlsMaterial(paths, order.clock, NODE_USES).then(
    () => true,
    () => false,
  );
  if (known === undefined || !isGood) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${order.dataFolder} has joined already, as ${known.id}: start it with 'grove fileserver', or add -again`,
  );
}

interface NodeKey {
  readonly pem: string;
  readonly pair: KeyPair;
}

/** The folder's key, so that a node that joins again stays the holder of its id; else a new one. */
async function keyOf(path: string): Promise<NodeKey> {
  const { exportPrivateKey, importKeyPair, makeKeyPair } = await import(
    "#security/authority/certificate-maker.ts"
  );
  const known = await readPrivateFile(path);
  if (known !== undefined) {
    try {
      const publicKey = createPublicKey(createPrivateKey(known)).export({ type: "spki", format: "der" });
      return { pem: known, pair: await importKeyPair(known, publicKey) };
    } catch (cause) {
      throw new GroveError("BAD_ARGUMENT", `${path} holds no key of Grove: move it away and join again`, {
        cause,
      });
    }
  }
  const pair = await makeKeyPair();
  const pem = await exportPrivateKey(pair.privateKey);
  await writePrivateFile(path, pem);
  return { pem, pair };
}

interface Request {
  readonly server: string;
  readonly authorityPem: string;
  readonly id: string;
  readonly hosts: readonly string[];
  readonly token: string;
  readonly key: NodeKey;
}

async function askFor(request: Request): Promise<{ readonly certificate: string }> {
  const { makeCertificateRequest } = await import("#security/authority/certificate-maker.ts");
  const channel = new GrpcChannel({ addresses: [request.server], tls: { ca: request.authorityPem } });
  try {
    return await createClient(MetaServer, channel).joinNode(
      {
        token: request.token,
        nodeId: request.id,
        certificateRequest: await makeCertificateRequest(request.key.pair, request.id),
        names: request.hosts.filter((host) => isIP(host) === 0),
        addresses: request.hosts.filter((host) => isIP(host) !== 0),
        version: VERSION,
      },
      { timeoutMs: CALL_TIMEOUT_MS },
    );
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const code = errorCodeOf(error.metadata.get(REASON_TRAILER)) ?? "STORE_UNAVAILABLE";
    throw new GroveError(code, `${request.server}: ${error.message}`, { cause: error });
  } finally {
    channel.close();
  }
}

/**
 * The answer of the first MetaServer that is reachable, is the token's, and signs; else the first failure, or
 * the worst.
 */
async function fromAny<T>(addresses: readonly string[], ask: (server: string) => Promise<T>): Promise<T> {
  let failure: GroveError | undefined;
  for (const server of addresses) {
    try {
      return await ask(server);
    } catch (error) {
      // A refusal is the cluster's answer; an absent, foreign or not signing server has given none.
      if (!isGroveError(error, "STORE_UNAVAILABLE", "CLUSTER_MISMATCH", "NOT_IMPLEMENTED")) throw error;
      failure ??= error;
      // A foreign server deserves the message rather than a silent one.
      if (error.code === "CLUSTER_MISMATCH") failure = error;
    }
  }
  throw failure ?? new GroveError("BAD_ARGUMENT", "no MetaServer was named");
}

/**
 * Reads a server's certificates in its handshake, sends nothing, and returns the one with the fingerprint.
 * The next connection proves that it signed the server, and the server's name.
 */
async function authorityOf(server: string, fingerprint: string): Promise<string> {
  const { host, port } = parseHostPort(server);
  const shown = await new Promise<string[]>((resolve, reject) => {
    const fail = (why: string): void => {
      socket.destroy();
      // As a call would have failed: the server is not there, and this machine works.
      const cause = new StatusError(Code.UNAVAILABLE, why);
      reject(new GroveError("STORE_UNAVAILABLE", `${server} ${why}`, { cause }));
    };
    const socket: TLSSocket = connect({
      host,
      port,
      ...(isIP(host) === 0 ? { servername: host } : {}),
      ALPNProtocols: ["h2"],
      ...TLS_POLICY,
      // Nothing is trusted yet: the fingerprint decides.
      rejectUnauthorized: false,
    });
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => fail("does not answer"));
    socket.once("error", (error) => fail(whyNot(error)));
    socket.once("close", () => fail("closed the connection: is it a MetaServer with TLS?"));
    socket.once("secureConnect", () => {
      const chain = chainOf(socket);
      socket.removeAllListeners("close");
      socket.destroy();
      resolve(chain);
    });
  });
  for (const pem of shown) {
    if (new X509Certificate(pem).fingerprint256.replaceAll(":", "").toLowerCase() === fingerprint) return pem;
  }
  throw new GroveError(
    "CLUSTER_MISMATCH",
    `${server} is not of the cluster that made the token, so nothing was sent to it; either the address is wrong, or somebody is in ` +
      "between, or it is a MetaServer without -ca_dir",
  );
}

function whyNot(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "ECONNREFUSED") return "refuses the connection: does the MetaServer run there?";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "is a name that nobody knows";
  if (code === "EPROTO" || code?.startsWith("ERR_SSL") === true)
    return "speaks no TLS: a MetaServer with -ca_dir does";
  return `cannot be reached (${code ?? error.message})`;
}

/** The peer's chain in PEM, from its own certificate up. */
function chainOf(socket: TLSSocket): string[] {
  const chain: string[] = [];
  let current = socket.getPeerX509Certificate();
  while (current !== undefined && chain.length < CHAIN_MAX) {
    chain.push(current.toString());
    const issuer: X509Certificate | undefined = current.issuerCertificate;
    if (issuer === undefined || issuer.fingerprint256 === current.fingerprint256) break;
    current = issuer;
  }
  return chain;
}
