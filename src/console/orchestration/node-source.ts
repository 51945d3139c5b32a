// The nodes of actions: from the metadata store, or from a hosted snippet while it is down (spec 4.7, D20).
import { join } from "node:path";
import { z } from "zod";
import { GroveError, isGroveError } from "#base/errors.ts";
import { SSH_PORT } from "#base/limits.ts";
import { errorText, type Logger } from "#base/log.ts";
import { checkedSshNode, type SshNode } from "#base/ssh-node.ts";
import { writeFileAtomic } from "#os/atomic-file.ts";
import type { Fetch } from "#os/authority-fetch.ts";
import { readStateFile } from "#os/state-file.ts";

/** Bytes of a hosted snippet: some hundred for each of a thousand nodes. */
const SNIPPET_MAX_BYTES = 262_144;
/** Time limit for reading it. */
const SNIPPET_TIMEOUT_MS = 5_000;

/** A snippet: addresses of nodes. All other fields, above all the host keys, stay as enrolled. */
const snippet = z.object({
  schema: z.literal(1).default(1),
  nodes: z.array(
    z.object({ id: z.string(), host: z.string(), port: z.int().min(1).max(65_535).default(SSH_PORT) }),
  ),
});

const keptNodes = z.object({ schema: z.literal(1), nodes: z.array(z.custom<SshNode>(isNode)) });

/** Name of the file in the console's data folder: the nodes of the store's last answer. */
const FILE = "ssh_nodes.json";

/** Dependencies of the source. */
export interface NodeSourceDeps {
  /** The console's data folder. */
  readonly folder: string;
  readonly log: Logger;
  /** The metadata store; rejects when it does not answer. */
  readonly store: () => Promise<readonly SshNode[]>;
  /** Undefined: no fallback. */
  readonly snippet: { readonly url: URL; readonly fetch: Fetch } | undefined;
}

/** Parses the address of a snippet. Throws BAD_ARGUMENT unless it is HTTPS without a password. */
export function snippetUrl(text: string): URL {
  const url = URL.parse(text);
  if (url === null || url.protocol !== "https:" || url.username !== "" || url.password !== "") {
    throw new GroveError(
      "BAD_ARGUMENT",
      "a snippet's address begins with https:// and holds no user or password",
    );
  }
  return url;
}

/** The nodes of actions. */
export class NodeSource {
  readonly #deps: NodeSourceDeps;
  #kept: string | undefined;

  constructor(deps: NodeSourceDeps) {
    this.#deps = deps;
  }

  /**
   * The enrolled nodes. While the store does not answer: those of its last answer that the snippet names, at
   * the snippet's addresses. Rejects with the store's error without a readable snippet or an earlier answer.
   */
  async nodes(): Promise<readonly SshNode[]> {
    const { store, snippet: from, log } = this.#deps;
    try {
      const nodes = await store();
      if (from !== undefined) await this.#keep(nodes);
      return nodes;
    } catch (error) {
      if (from === undefined || !isGroveError(error, "STORE_UNAVAILABLE")) throw error;
      try {
        const nodes = await this.#fromSnippet(from);
        log.warn("nodes_from_snippet", { nodes: nodes.length, store: errorText(error) });
        return nodes;
      } catch (second) {
        log.warn("snippet_unusable", { error: errorText(second) });
        throw error;
      }
    }
  }

  /** Saves changed nodes; a full disk must not keep actions from running. */
  async #keep(nodes: readonly SshNode[]): Promise<void> {
    const text = `${JSON.stringify({ schema: 1, nodes })}\n`;
    if (text === this.#kept) return;
    try {
      await writeFileAtomic(join(this.#deps.folder, FILE), text);
      this.#kept = text;
    } catch (error) {
      this.#deps.log.warn("nodes_not_kept", { error: errorText(error) });
    }
  }

  async #fromSnippet({ url, fetch }: NonNullable<NodeSourceDeps["snippet"]>): Promise<SshNode[]> {
    const kept = await readStateFile(join(this.#deps.folder, FILE), keptNodes);
    if (typeof kept === "string") throw new Error(`the nodes as the store told them last: ${kept}`);
    const known = new Map(kept.nodes.map((node) => [node.id, node]));
    const { nodes } = snippet.parse(JSON.parse(await text(url, fetch)));
    return nodes.flatMap(({ id, host, port }) => {
      const node = known.get(id);
      // A host without a pinned key is never used.
      return node === undefined ? [] : [checkedSshNode({ ...node, host, port })];
    });
  }
}

/** The body of a 200; redirects are refused. */
async function text(url: URL, fetch: Fetch): Promise<string> {
  const signal = AbortSignal.timeout(SNIPPET_TIMEOUT_MS);
  const answer = await fetch(url, { signal, redirect: "manual", headers: { accept: "application/json" } });
  if (answer.status !== 200 || answer.body === null)
    throw new Error(`the snippet has status ${answer.status}`);
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer.body as AsyncIterable<Uint8Array>) {
    bytes += piece.length;
    if (bytes > SNIPPET_MAX_BYTES) throw new Error(`the snippet is longer than ${SNIPPET_MAX_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

function isNode(value: unknown): boolean {
  try {
    checkedSshNode(value as SshNode);
    return true;
  } catch {
    return false;
  }
}
