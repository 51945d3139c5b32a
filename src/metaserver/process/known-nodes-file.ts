// Keeps the ids of nodes beside the metadata store, so that a lost store can wait for their lists (D19).
import { join } from "node:path";
import { z } from "zod";
import { NODES_MAX } from "#base/limits.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { readStateFile } from "#os/state-file.ts";

const FILE = "known_nodes.json";

const shape = z.strictObject({
  schema: z.literal(1),
  nodes: z.array(z.string().refine(isNodeId)).max(NODES_MAX),
});

function isNodeId(text: string): boolean {
  return /^[a-z0-9-]{1,63}$/.test(text);
}

/** The nodes that this host's MetaServer knew last, at most 1000. */
export interface KnownNodesFile {
  readonly nodes: readonly string[];
  /** True for a node that the file names already. */
  has(fsId: string): boolean;
  /** Replaces them; resolves when that is on stable storage. */
  remember(nodes: readonly string[]): Promise<void>;
}

/**
 * Opens the file in a folder. A damaged file counts as none: a lost store then only waits longer. Throws
 * BAD_ARGUMENT for a newer Grove's.
 */
export async function openKnownNodesFile(folder: string): Promise<KnownNodesFile> {
  const path = join(folder, FILE);
  await removeLeftovers(path);
  const kept = await readStateFile(path, shape);
  let nodes: readonly string[] = typeof kept === "string" ? [] : kept.nodes;
  /** What the file holds, and what it will hold after the write under way. */
  let written = nodes;
  let wanted: readonly string[] | undefined = nodes;
  let writing: Promise<void> = Promise.resolve();
  const write = async (sorted: readonly string[]): Promise<void> => {
    try {
      await writeFileAtomic(path, `${JSON.stringify({ schema: 1, nodes: sorted })}\n`);
      written = sorted;
    } catch (error) {
      // The disk may be full for a while: the same list is written again.
      if (wanted === sorted) wanted = undefined;
      throw error;
    }
  };
  return {
    get nodes(): readonly string[] {
      return nodes;
    },
    has: (fsId) => written.includes(fsId),
    async remember(others: readonly string[]): Promise<void> {
      const sorted = [...new Set(others)].toSorted().slice(0, NODES_MAX);
      nodes = sorted;
      if (sorted.join() !== wanted?.join()) {
        wanted = sorted;
        // One after another, also after a failed one: each holds all of them.
        writing = writing.catch(() => undefined).then(() => write(sorted));
      }
      await writing;
    },
  };
}
