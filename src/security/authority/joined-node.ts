// The file that `grove node join` writes to a node's data folder, so that `grove fileserver -data` needs no
// further flags.
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { checkedFileServerAddress, checkedNodeId, formatHostPort, parseHostPort } from "#base/node-id.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { readStateFile, shapeOf } from "#os/state-file.ts";
import type { TlsPaths } from "./tls-material.ts";

const FILE = "node.json";

/** The settings of a joined node. */
export interface JoinedNode {
  readonly id: string;
  /** host:port of each MetaServer. */
  readonly metaservers: readonly string[];
  /** host:port for clients; undefined when it was not given. */
  readonly advertise: string | undefined;
}

/** Paths of the node's certificate, key and authority in its data folder. */
export function joinedTlsPaths(dataFolder: string): TlsPaths {
  const folder = join(dataFolder, "tls");
  return { cert: join(folder, "node.crt"), key: join(folder, "node.key"), ca: join(folder, "ca.crt") };
}

/** Reads the file; undefined for a folder that did not join. Throws BAD_ARGUMENT when it is malformed. */
export async function readJoinedNode(dataFolder: string): Promise<JoinedNode | undefined> {
  const path = join(dataFolder, FILE);
  const node = await readStateFile(path, shapeOf(nodeOf));
  if (node === "missing") return undefined;
  if (node !== "broken") return node;
  throw new GroveError("BAD_ARGUMENT", `${path} cannot be understood; 'grove node join' writes it anew`);
}

function nodeOf(document: unknown): JoinedNode {
  const { schema, id, metaservers, advertise } = document as Record<string, unknown>;
  if (schema !== 1) throw new Error("it says no schema");
  if (!Array.isArray(metaservers)) throw new Error("metaservers is no list");
  return {
    id: checkedNodeId(text(id)),
    metaservers: metaservers.map((item) => formatHostPort(parseHostPort(text(item)))),
    advertise: advertise === null ? undefined : checkedFileServerAddress(text(advertise)),
  };
}

function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new Error("a text is missing");
}

/** Writes the file. */
export async function writeJoinedNode(dataFolder: string, node: JoinedNode): Promise<void> {
  const path = join(dataFolder, FILE);
  await removeLeftovers(path);
  const document = {
    schema: 1,
    id: node.id,
    metaservers: node.metaservers,
    advertise: node.advertise ?? null,
  };
  await writeFileAtomic(path, `${JSON.stringify(document, null, 2)}\n`, { mode: 0o600 });
}
