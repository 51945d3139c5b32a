// Records in a data folder the role of its last start, so that a start with a lesser role is noticed (D19).
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { GroveError } from "#base/errors.ts";
import { checkedNodeId } from "#base/node-id.ts";
import { shellWord } from "#base/shell-word.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { readStateFile, shapeOf } from "#os/state-file.ts";
import { readClusterId } from "./cluster-id-file.ts";
import { type JoinedNode, joinedTlsPaths, readJoinedNode } from "./joined-node.ts";

const FILE = "served_as.json";

/** The role in which a node serves its data folder. */
export interface NodeRole {
  readonly id: string;
  /** host:port of each MetaServer; empty for a standalone node. */
  readonly metaservers: readonly string[];
  /** host:port for clients; undefined when it was not given. */
  readonly advertise: string | undefined;
  readonly hasTls: boolean;
}

/** The recorded past of a data folder. */
export interface PastRole {
  /** Role of the last start; undefined for a folder that was never served, or only by an older Grove. */
  readonly role: NodeRole | undefined;
  /** Settings by `grove node join`; undefined for a folder that did not join. */
  readonly joined: JoinedNode | undefined;
  /**
   * The cluster that has accepted its registration, also when it is served alone since; undefined for none.
   */
  readonly clusterId: string | undefined;
  /** True when the private key of `grove node join` is there. */
  readonly hasKey: boolean;
}

/**
 * Reads the past of a folder, which may be missing or empty. Throws BAD_ARGUMENT, or CORRUPT, for malformed
 * files.
 */
export async function readPastRole(dataFolder: string): Promise<PastRole> {
  return {
    role: await readRole(join(dataFolder, FILE)),
    joined: await readJoinedNode(dataFolder),
    clusterId: await readClusterId(dataFolder),
    hasKey: await stat(joinedTlsPaths(dataFolder).key).then(
      () => true,
      () => false,
    ),
  };
}

/** Records the folder's role, unless it is recorded already. */
export async function writeNodeRole(dataFolder: string, role: NodeRole): Promise<void> {
  const path = join(dataFolder, FILE);
  const { id, metaservers, advertise, hasTls } = role;
  const document = { schema: 1, id, metaservers, advertise: advertise ?? null, tls: hasTls };
  const text = `${JSON.stringify(document, null, 2)}\n`;
  if ((await textOf(path)) === text) return;
  await removeLeftovers(path);
  await writeFileAtomic(path, text);
}

/**
 * The losses of a start against the folder's past: "alone", "without TLS", "as other-id". Empty without
 * losses.
 */
export function lossesOf(past: PastRole, now: NodeRole): string[] {
  const id = idOf(past);
  const isMember = wasMember(past);
  return [
    ...(isMember && now.metaservers.length === 0 ? ["alone"] : []),
    ...(hadTls(past) && !now.hasTls ? ["without TLS"] : []),
    ...(isMember && id !== undefined && id !== now.id ? [`as ${now.id}`] : []),
  ];
}

/** The folder's past in words: "n1 of the cluster at meta.example.net:50050, with TLS". */
export function pastInWords(past: PastRole): string {
  const metaservers = metaserversOf(past);
  const place =
    metaservers.length > 0 ? `the cluster at ${metaservers.join(",")}` : `cluster ${past.clusterId ?? ""}`;
  const who = idOf(past) ?? "a node";
  return `${who}${wasMember(past) || past.joined !== undefined ? ` of ${place}` : ""}${hadTls(past) ? ", with TLS" : ""}`;
}

/** The commands that serve a folder as before, in order. Unknown values are in capitals. */
export function commandsToServe(past: PastRole, dataFolder: string): string[] {
  const { role, joined, hasKey } = past;
  const data = shellWord(dataFolder);
  const id = idOf(past) ?? "ID";
  const metaservers = metaserversOf(past);
  const advertise = joined?.advertise ?? role?.advertise;
  if (joined !== undefined && hasKey) {
    const told = joined.advertise === undefined && advertise !== undefined ? ` -advertise ${advertise}` : "";
    return [`grove fileserver -data ${data}${told}`];
  }
  if (joined !== undefined || (role === undefined && wasMember(past))) {
    const place = metaservers.length > 0 ? metaservers.join(",") : "HOST:50050";
    return [
      `grove node token -ca_dir FOLDER -id ${id} > ${id}.token`,
      `grove node join -metaserver ${place} -data ${data} -id ${id} -advertise ${advertise ?? "HOST:50051"} -token_file ${id}.token`,
      `grove fileserver -data ${data}`,
    ];
  }
  if (role === undefined) return [`grove fileserver -data ${data}`];
  const member = metaservers.length > 0 ? ` -metaserver ${metaservers.join(",")}` : "";
  const told = advertise === undefined ? "" : ` -advertise ${advertise}`;
  const tls = role.hasTls ? " -tls_cert FILE -tls_key FILE -tls_ca FILE" : "";
  return [`grove fileserver -data ${data} -id ${id}${member}${told}${tls}`];
}

/** True for the folder of a node that a cluster knows, unless it was served alone on purpose since. */
export function wasMember({ role, clusterId }: PastRole): boolean {
  return clusterId !== undefined && (role === undefined || role.metaservers.length > 0);
}

/** The MetaServers of a folder's node, host:port; empty for one that stands alone. */
export function metaserversOf({ role, joined }: PastRole): readonly string[] {
  return joined?.metaservers ?? role?.metaservers ?? [];
}

function idOf({ role, joined }: PastRole): string | undefined {
  return role?.id ?? joined?.id;
}

function hadTls({ role, joined }: PastRole): boolean {
  return role?.hasTls ?? joined !== undefined;
}

async function readRole(path: string): Promise<NodeRole | undefined> {
  const role = await readStateFile(path, shapeOf(roleOf));
  if (role === "missing") return undefined;
  if (role !== "broken") return role;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${path} cannot be understood: put it back from a backup, or remove it and start the node with all the flags that it had`,
  );
}

function roleOf(document: unknown): NodeRole {
  const { schema, id, metaservers, advertise, tls } = document as Record<string, unknown>;
  if (schema !== 1 || typeof id !== "string" || typeof tls !== "boolean") throw new Error("a field is wrong");
  if (!Array.isArray(metaservers) || !metaservers.every((item) => typeof item === "string"))
    throw new Error("metaservers is no list of texts");
  if (advertise !== null && typeof advertise !== "string") throw new Error("advertise is no text");
  return { id: checkedNodeId(id), metaservers, advertise: advertise ?? undefined, hasTls: tls };
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
