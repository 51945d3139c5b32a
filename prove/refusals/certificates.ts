// Client certificates at every call of the control plane (spec 5.6, C-07).
import "reflect-metadata";
import { X509Certificate as ReadCertificate, webcrypto } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { X509Certificate } from "@peculiar/x509";
import type { Cluster } from "#metaserver/process/enrolment.fixture.ts";
import { nodeMessage } from "#metaserver/process/meta-server.fixture.ts";
import type { Campaign } from "#prove/campaign.ts";
import { REVOKED_FILE } from "#security/authority/authority.ts";
import { importPrivateKey } from "#security/authority/certificate-maker.ts";
import { CERTIFICATE_CHECK_INTERVAL_MS } from "#security/authority/file-stamp.ts";
import { revoke } from "#security/authority/revocations.ts";
import {
  ALLOWED_CERTIFICATES,
  type Authorities,
  type CertificateRecipe,
  dns,
  makeAuthorities,
  makeCertificate,
  REFUSED_CERTIFICATES,
} from "#security/identity/certificates.fixture.ts";
import { type Client, createClient, type GrpcChannelOptions } from "#wire/grpc/client.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { MoveStep, RootMoves } from "#wire/proto/gen/grove/v1/root_moves_pb.ts";
import { type Door, mustBeAccepted, mustBeRefused, outcomeOf } from "./credential.ts";

type Tls = NonNullable<GrpcChannelOptions["tls"]>;

/** A caller of all services for nodes. */
interface Meta {
  readonly meta: Client<typeof MetaServer>;
  readonly moves: Client<typeof RootMoves>;
}

const NODE = "n1";
const SHARE = { owner: "u@example.com", path: "/docs", user: "v@example.com", version: 7n };
const REFUSAL = ["CLIENT_CERT_REQUIRED"];
/** None at all, another node's, a revoked one, and one that expired while its connection stood. */
const BESIDE_THE_TABLE = 4;

/** Number of certificates that this part tries. */
export const CERTIFICATES: number = REFUSED_CERTIFICATES.length + BESIDE_THE_TABLE;

/** Tries them all. At its end the cluster's clock has moved by days. */
export async function tryCertificates(campaign: Campaign, cluster: Cluster): Promise<void> {
  const authorities = await authoritiesOf(cluster);
  const ca = cluster.authority.certificatePem;
  const connect = (tls: Tls): Meta => {
    const channel = cluster.channel(tls);
    return { meta: createClient(MetaServer, channel), moves: createClient(RootMoves, channel) };
  };
  const clientOf = async (recipe: CertificateRecipe): Promise<{ client: Meta; pem: string }> => {
    const { pem, key } = await makeCertificate(authorities, recipe);
    return { client: connect({ ca, cert: pem, key }), pem };
  };
  const good = { sans: dns(`${NODE}.cluster.local`) };
  const { client: holder } = await clientOf(good);
  await mustBeAccepted(campaign, "certificate of the node itself", ownDoorsOf(holder));
  for (const [what, recipe, nodeId] of ALLOWED_CERTIFICATES) {
    const { client } = await clientOf(recipe);
    if (nodeId === undefined) {
      const { newNode } = doorsOf(client);
      await mustBeAccepted(campaign, `certificate: ${what}`, { newNode });
    }
    if (nodeId !== NODE) continue;
    await mustBeAccepted(campaign, `certificate: ${what}`, {
      renewCertificate: doorsOf(client).renewCertificate,
    });
  }
  for (const [what, recipe] of REFUSED_CERTIFICATES) {
    const { client } = await clientOf(recipe);
    await mustBeRefused(campaign, `certificate: ${what}`, doorsOf(client), REFUSAL);
  }
  await mustBeRefused(campaign, "no certificate", doorsOf(connect({ ca })), REFUSAL);
  const { client: neighbour } = await clientOf({ sans: dns("n2.cluster.local") });
  await mustBeRefused(campaign, "another node's certificate", doorsOf(neighbour), REFUSAL);
  const { client: revoked, pem } = await clientOf(good);
  await revoke(join(cluster.authority.folder, REVOKED_FILE), new ReadCertificate(pem).serialNumber, "lost");
  while (cluster.certificates.revocations?.isRevoked(new ReadCertificate(pem).serialNumber) !== true) {
    cluster.clock.advance(CERTIFICATE_CHECK_INTERVAL_MS);
    await sleep(10);
  }
  await mustBeRefused(campaign, "a revoked certificate", doorsOf(revoked), REFUSAL);
  cluster.clock.jumpWall(2 * 86_400_000);
  await mustBeRefused(
    campaign,
    "a certificate that has run out since it connected",
    doorsOf(holder),
    REFUSAL,
  );
}

let freeNodes = 0;

/** Every call that speaks for a node. */
function doorsOf({
  meta: client,
  moves,
}: Meta): Readonly<Record<"renewCertificate" | "newNode" | "advanceMove", Door> & Record<string, Door>> {
  const node = { fsId: NODE, epoch: 1n };
  return {
    // A certificate that names no node may speak for an unused id: wrong acceptance is seen here.
    newNode: () => outcomeOf(client.registerFileServer(nodeMessage(`free${++freeNodes}`))),
    registerFileServer: () => outcomeOf(client.registerFileServer(nodeMessage(NODE))),
    heartbeat: () => outcomeOf(client.heartbeat(node)),
    claimRoot: () => outcomeOf(client.claimRoot({ ...node, username: "u@example.com" })),
    rootShare: () => outcomeOf(client.rootShare({ ...node, ...SHARE })),
    rootUnshare: () => outcomeOf(client.rootUnshare({ ...node, ...SHARE })),
    listMoves: () => outcomeOf(moves.listMoves(node)),
    // The node itself hears that there is no such move.
    advanceMove: () =>
      outcomeOf(moves.advanceMove({ ...node, moveId: "01JD0000000000000000000000", step: MoveStep.SWITCH })),
    renewCertificate: () => outcomeOf(client.renewCertificate({ nodeId: NODE })),
  };
}

/** The calls that the node itself may use. */
function ownDoorsOf(client: Meta): Readonly<Record<string, Door>> {
  const { newNode: _newNode, advanceMove: _advanceMove, ...own } = doorsOf(client);
  return own;
}

/** The cluster's own authority, whose key signs anything here, and a foreign one. */
async function authoritiesOf({ authority }: Cluster): Promise<Authorities> {
  const certificate = new X509Certificate(authority.certificatePem);
  const privateKey = await importPrivateKey(await readFile(join(authority.folder, "ca.key"), "utf8"));
  const publicKey = await certificate.publicKey.export(webcrypto);
  const { other } = await makeAuthorities();
  return { cluster: { certificate, keys: { privateKey, publicKey } }, other };
}
