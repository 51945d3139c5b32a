// Where a node is reached over SSH, and by which key of its host it is known.
import { checkedHostKey, checkedSshNode, type SshNode } from "#base/ssh-node.ts";

/** A node as the transport sees it; the records of the metadata store have these fields. */
export type SshTarget = Pick<SshNode, "id" | "host" | "port" | "user" | "hostKey">;

/** By the kind of a key, the algorithms of signature with which its host may prove that it has it; others are named as it is. */
const ALGORITHMS: Readonly<Record<string, string>> = { "ssh-rsa": "rsa-sha2-512,rsa-sha2-256" };

/** Throws BAD_ARGUMENT unless every field is what a record may hold: they end in the arguments of ssh (E-02). */
export function checkSshTarget(target: SshTarget): void {
  checkedSshNode({ ...target, repository: "none", services: {} });
}

/** What ssh is told so that it knows this host by the pinned key and by nothing else: a line for its file, and options. */
export function hostKeyPin(target: SshTarget): {
  readonly line: string;
  readonly options: readonly string[];
} {
  const key = checkedHostKey(target.hostKey);
  const kind = key.slice(0, key.indexOf(" "));
  const alias = `grove-node-${target.id}`;
  return {
    line: `${alias} ${key}\n`,
    options: [
      "StrictHostKeyChecking=yes",
      "GlobalKnownHostsFile=/dev/null",
      "UpdateHostKeys=no",
      "CheckHostIP=no",
      "VerifyHostKeyDNS=no",
      `HostKeyAlias=${alias}`,
      `HostKeyAlgorithms=${ALGORITHMS[kind] ?? kind}`,
    ],
  };
}
