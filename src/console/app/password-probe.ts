// Which operator's password a node has, asked in a way that changes nothing there: a quota for nobody.
import { NOT_ADMIN_TEXT } from "#base/errors.ts";
import { errorText } from "#base/log.ts";
import type { SetQuotaOnNode } from "#console/services/node-dial.ts";
import { QUOTA_CHANGE_TIMEOUT_MS } from "#console/services/quota-service.ts";

/** A node as the store knows it. */
export interface NodeToAsk {
  readonly id: string;
  readonly address: string;
}

/** What a node has: the first of the passwords that were tried, the second, another one; or what kept it from saying. */
export interface NodeAnswer {
  readonly id: string;
  readonly state: "same" | "previous" | "another" | "unknown";
  /** Why it is not known. */
  readonly problem: string;
}

/** What nodes are asked with. */
export interface ProbeDeps {
  /** SHA-256 hex: the password that is to be in force, and the one before it. */
  readonly hashes: readonly string[];
  readonly setQuota: SetQuotaOnNode;
}

/** No user can have this name: it is no e-mail address that anybody gives out. */
const NOBODY = "nobody@password.check.invalid";
const NODES_AT_ONCE = 8;

/** Asks all nodes; a wrong password is tried once at most, since nodes count them. */
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
    // The one before comes first: right after a change most nodes have it, and none of them counts a wrong one.
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

/** The answer as people read it. */
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
