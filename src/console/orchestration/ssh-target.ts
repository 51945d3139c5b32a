// The SSH address of a node and the pinned key of its host.
import { checkedHostKey, checkedSshNode, type SshNode } from "#base/ssh-node.ts";

/** A node for the transport; the records of the metadata store have these fields. */
export type SshTarget = Pick<SshNode, "id" | "host" | "port" | "user" | "hostKey">;

/** The signature algorithms of each kind of host key, where they differ from its name. */
const ALGORITHMS: Readonly<Record<string, string>> = { "ssh-rsa": "rsa-sha2-512,rsa-sha2-256" };

/** Throws BAD_ARGUMENT for a field that a record may not hold: they become arguments of ssh (E-02). */
export function checkSshTarget(target: SshTarget): void {
  checkedSshNode({ ...target, repository: "none", services: {} });
}

/** The known_hosts line and the options by which ssh accepts only the pinned key. */
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
