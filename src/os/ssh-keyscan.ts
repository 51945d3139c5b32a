// Asks a host for its SSH keys with ssh-keyscan; a person must compare the fingerprint before trust.
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { GroveError } from "#base/errors.ts";
import { checkedHostKey } from "#base/ssh-node.ts";

/** How long a host may take to show its SSH keys. */
const SSH_KEYSCAN_TIMEOUT_MS = 5_000;

/** The requested key types, the preferred one first. */
const KINDS = ["ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa"];
const ANSWER_MAX_BYTES = 65_536;

/** The `SHA256:…` fingerprint of a host key, as ssh-keygen prints it. */
export function sshFingerprint(hostKey: string): string {
  const bytes = Buffer.from(hostKey.split(" ", 2)[1] ?? "", "base64");
  return `SHA256:${createHash("sha256").update(bytes).digest("base64").replace(/=+$/, "")}`;
}

/**
 * The keys that a host shows, the strongest first. Throws BAD_ARGUMENT when no SSH server answers, or
 * ssh-keyscan is missing. The caller checks the host first, since it becomes an argument.
 */
export async function scanHostKeys(place: {
  readonly host: string;
  readonly port: number;
}): Promise<string[]> {
  const seconds = String(Math.ceil(SSH_KEYSCAN_TIMEOUT_MS / 1_000));
  const text = await answerOf([
    "-T",
    seconds,
    "-p",
    String(place.port),
    "-t",
    "ed25519,ecdsa,rsa",
    "--",
    place.host,
  ]);
  const keys = text.split("\n").flatMap((line) => {
    // The host stands before the key, and comments begin with #.
    const key = line.startsWith("#") ? "" : line.slice(line.indexOf(" ") + 1);
    try {
      return [checkedHostKey(key)];
    } catch {
      return [];
    }
  });
  if (keys.length === 0) throw bad(`nothing at ${place.host}, port ${place.port}, shows an SSH host key`);
  const rank = (key: string): number => KINDS.findIndex((kind) => key.startsWith(`${kind} `));
  return keys.toSorted((a, b) => rank(a) - rank(b));
}

function answerOf(argv: readonly string[]): Promise<string> {
  const options = { timeout: 3 * SSH_KEYSCAN_TIMEOUT_MS, maxBuffer: ANSWER_MAX_BYTES };
  return new Promise((resolve, reject) => {
    execFile("ssh-keyscan", argv, options, (error, stdout) => {
      const isMissing = (error as NodeJS.ErrnoException | null)?.code === "ENOENT";
      if (isMissing) reject(bad("ssh-keyscan is missing: install openssh-client"));
      // It fails when one of several key types is missing; the printed keys count.
      else resolve(stdout);
    });
  });
}

function bad(message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message);
}
