// Finds out which operator's password a node has, by a quota for a user that cannot exist.
import { errorText } from "#base/log.ts";
import { NOT_ADMIN_TEXT } from "#base/refusal-texts.ts";
import type { SetQuotaOnNode } from "#console/services/node-dial.ts";
import { QUOTA_CHANGE_TIMEOUT_MS } from "#console/services/quota-service.ts";

/** A node of the store. */
export interface NodeToAsk {
  readonly id: string;
  readonly address: string;
}

/** Outcome for a node: the first tried password, the second, another one; or the error. */
export interface NodeAnswer {
  readonly id: string;
  readonly state: "same" | "previous" | "another" | "unknown";
  /** The error. */
  readonly problem: string;
}

/** Dependencies of the probe. */
export interface ProbeDeps {
  /** SHA-256 hex: the intended password, and the previous one. */
  readonly hashes: readonly string[];
  readonly setQuota: SetQuotaOnNode;
}

/** A name that no user has: the address is in a reserved domain. */
const NOBODY = "nobody@password.check.invalid";
const NODES_AT_ONCE = 8;

/** Asks all nodes, each with at most one wrong password, since nodes count them. */
export async function askNodes(nodes: readonly NodeToAsk[], deps: ProbeDeps): Promise<NodeAnswer[]> {
  const answers: NodeAnswer[] = [];
  for (let at = 0; at < nodes.length; at += NODES_AT_ONCE) {
    const some = nodes.slice(at, at + NODES_AT_ONCE);
    answers.push(...(await Promise.all(some.map((node) => askOne(node, deps)))));
  }
  return answers;
}

async function askOne({ id, address }: NodeToAsk, { hashes, setQuota }: ProbeDeps): Promise<NodeAnswer> {
  const [wanted = "", before] = hashes;
  try {
    // The previous password first: right after a change most nodes have it, and count no wrong one.
    if (before !== undefined && (await takes(before))) return { id, state: "previous", problem: "" };
    return { id, state: (await takes(wanted)) ? "same" : "another", problem: "" };
  } catch (error) {
    return { id, state: "unknown", problem: errorText(error) };
  }

  async function takes(passwordHash: string): Promise<boolean> {
    const call = { address, username: NOBODY, quotaBytes: 0n, inodeLimit: undefined, passwordHash };
    const { error } = await setQuota({ ...call, timeoutMs: QUOTA_CHANGE_TIMEOUT_MS });
    if (error.startsWith(`${NOT_ADMIN_TEXT};`)) throw new Error(error.slice(NOT_ADMIN_TEXT.length + 2));
    return error !== NOT_ADMIN_TEXT;
  }
}

/** The outcome as a sentence. */
export function wordsFor({ state, problem }: NodeAnswer): string {
  switch (state) {
    case "same":
      return "has it";
    case "previous":
      return "has the password before still";
    case "another":
      return "another password than this console's, or -no_password_path";
    default:
      return `not known: ${problem}`;
  }
}
