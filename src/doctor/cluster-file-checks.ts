// The checks of a whole demonstration, from the cluster.json that `grove up` keeps while it runs.
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "#base/clock.ts";
import { parseFields, type StoredFields } from "#client/signin/stored-json.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { authorityCheck, certificateFilesCheck, servedCertificateCheck } from "./certificates.ts";
import { fixed } from "./client-checks.ts";
import { type Check, warning } from "./finding.ts";
import {
  diskCheck,
  folderCheck,
  nodeCheck,
  portRuleCheck,
  quotaFileCheck,
  storeCheck,
} from "./host-checks.ts";
import { providerChecks } from "./provider-checks.ts";
import { serverCheck, type Trust } from "./server-probe.ts";

/** The checks of everything that the file names. Throws USAGE when it is no cluster file. */
export async function clusterFileChecks(text: string, folder: string): Promise<Check[]> {
  const fields = parseFields(text);
  const metaserver = fields?.text("metaserver");
  if (fields === undefined || metaserver === undefined) {
    throw new ClientError("USAGE", "that is not a cluster file: it names no metaserver", {
      todo: "Give the cluster.json in the data folder of 'grove up'.",
    });
  }
  // The one that people sign in with, such as that of 'grove init', says neither where nodes are nor how they are served.
  if (nodesOf(text).length === 0) {
    throw new ClientError("USAGE", "that is not the cluster file of a 'grove up': it names no nodes", {
      todo: "Give -data FOLDER on a server's machine. As one of its users, sign in with the file, then type 'grove doctor' alone.",
    });
  }
  const caPath = fields.text("ca");
  const trust: Trust = {
    // Its own check reports a defect.
    ca: caPath === undefined ? undefined : await readFile(caPath, "utf8").catch(() => undefined),
    mock: fields.flag("mock"),
  };
  const idp = fields.fields("idp");
  return [
    serverCheck("metaserver", metaserver, MetaServer.typeName, trust),
    storeCheck(`sqlite:${join(folder, "metaserver", "metadata.db")}`),
    ...(caPath === undefined
      ? [fixed(warning("TLS", "everything is plain and mock sign-in is on", "Use it for trials only."))]
      : certificateChecks(folder, caPath, ["metaserver", ...nodesOf(text).map(({ id }) => id)])),
    ...(trust.ca === undefined
      ? []
      : [servedCertificateCheck(metaserver, trust.ca, () => systemClock.wallMs())]),
    ...nodesOf(text).flatMap((node) => nodeChecks(node, trust, fields)),
    ...(idp === undefined
      ? []
      : providerChecks({ issuer: idp.text("issuer"), tokeninfoUrl: idp.text("tokeninfo_url") })),
  ];
}

interface NodeEntry {
  readonly id: string;
  readonly grpc: string;
  readonly data: string;
}

function nodesOf(text: string): NodeEntry[] {
  const { nodes } = JSON.parse(text) as { nodes?: unknown };
  if (!Array.isArray(nodes)) return [];
  return nodes.flatMap((node: unknown) => {
    const { id, grpc, data } = (node ?? {}) as Record<string, unknown>;
    return typeof id === "string" && typeof grpc === "string" && typeof data === "string"
      ? [{ id, grpc, data }]
      : [];
  });
}

function nodeChecks(node: NodeEntry, trust: Trust, fields: StoredFields): Check[] {
  return [
    folderCheck(node.data),
    // The demonstration's reserve is lower on a small disk; the node reports when it is reached.
    diskCheck(node.data, 0n),
    quotaFileCheck(node.data),
    portRuleCheck(node.grpc),
    serverCheck(node.id, node.grpc, FileServer.typeName, trust),
    ...(trust.ca === undefined
      ? []
      : [servedCertificateCheck(node.grpc, trust.ca, () => systemClock.wallMs())]),
    nodeCheck(node.id, node.grpc, fields.text("metrics_token")),
  ];
}

function certificateChecks(folder: string, ca: string, ids: readonly string[]): Check[] {
  const wallMs = (): number => systemClock.wallMs();
  const files = ids.flatMap((id) => {
    const cert = join(folder, "certs", `${id}.crt`);
    const key = join(folder, "certs", `${id}.key`);
    return existsSync(cert) ? [certificateFilesCheck({ cert, key, ca }, wallMs)] : [];
  });
  return [authorityCheck(ca, wallMs), ...files];
}
