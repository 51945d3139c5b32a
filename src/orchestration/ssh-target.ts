// Where a node is reached over SSH, and by which key of its host it is known.
import { createHash } from "node:crypto";
import { GroveError } from "#base/errors.ts";

/** A node as the transport sees it; the records of the metadata store have these fields. */
export interface SshTarget {
  /** The node's id, as it is registered. */
  readonly id: string;
  /** An address or a name. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** The host's public key that was pinned at enrolment: `ssh-ed25519 AAAA…`, a comment may follow (D20). */
  readonly hostKey: string;
}

/** By the type of a key, the algorithms of signature with which its host may prove that it has it. */
const ALGORITHMS: Readonly<Record<string, string>> = {
  "ssh-ed25519": "ssh-ed25519",
  "ecdsa-sha2-nistp256": "ecdsa-sha2-nistp256",
  "ecdsa-sha2-nistp384": "ecdsa-sha2-nistp384",
  "ecdsa-sha2-nistp521": "ecdsa-sha2-nistp521",
  "ssh-rsa": "rsa-sha2-512,rsa-sha2-256",
};

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const NAME_OR_IPV4 = /^[A-Za-z0-9][A-Za-z0-9.-]{0,252}$/;
const IPV6 = /^(?=.*:)[0-9A-Fa-f:.]{2,45}$/;
const USER = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/;
const HOST_KEY = /^([a-z0-9-]+) ([A-Za-z0-9+/]{32,4096}={0,2})(?: [^\r\n]*)?$/;
const PORT_MAX = 65_535;

/** A host's key in its parts. */
interface HostKey {
  readonly type: string;
  readonly base64: string;
}

/** Throws BAD_ARGUMENT, with a sentence that names the field, unless every field is what it should be (E-02). */
export function checkSshTarget(target: SshTarget): void {
  const refuse = (what: string): never => {
    throw new GroveError("BAD_ARGUMENT", `the SSH target of a node has no usable ${what}`);
  };
  if (!ID.test(target.id)) refuse("id");
  if (!NAME_OR_IPV4.test(target.host) && !IPV6.test(target.host)) refuse("host");
  if (!Number.isInteger(target.port) || target.port < 1 || target.port > PORT_MAX) refuse("port");
  if (!USER.test(target.user)) refuse("user");
  parseHostKey(target.hostKey);
}

/** `SHA256:…` of a public key, as `ssh-keygen -l` shows it. Throws BAD_ARGUMENT for what is no key of a known type. */
export function hostKeyFingerprint(hostKey: string): string {
  const digest = createHash("sha256")
    .update(Buffer.from(parseHostKey(hostKey).base64, "base64"))
    .digest("base64");
  return `SHA256:${digest.replace(/=+$/, "")}`;
}

/** What ssh is told so that it knows this host by the pinned key and by nothing else: a line for its file, and options. */
export function hostKeyPin(target: SshTarget): {
  readonly line: string;
  readonly options: readonly string[];
} {
  const { type, base64 } = parseHostKey(target.hostKey);
  const alias = `grove-node-${target.id.toLowerCase()}`;
  return {
    line: `${alias} ${type} ${base64}\n`,
    options: [
      "StrictHostKeyChecking=yes",
      "GlobalKnownHostsFile=/dev/null",
      "UpdateHostKeys=no",
      "CheckHostIP=no",
      "VerifyHostKeyDNS=no",
      `HostKeyAlias=${alias}`,
      `HostKeyAlgorithms=${ALGORITHMS[type]}`,
    ],
  };
}

function parseHostKey(hostKey: string): HostKey {
  const [, type = "", base64 = ""] = HOST_KEY.exec(hostKey) ?? [];
  const blob = Buffer.from(base64, "base64");
  // The blob begins with the length of its type's name and that name.
  const isWhole =
    Object.hasOwn(ALGORITHMS, type) &&
    blob.length > 4 + type.length &&
    blob.readUInt32BE(0) === type.length &&
    blob.toString("latin1", 4, 4 + type.length) === type;
  if (!isWhole) throw new GroveError("BAD_ARGUMENT", "the SSH target of a node has no usable host key");
  return { type, base64 };
}
