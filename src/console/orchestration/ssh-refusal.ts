// Reads from ssh's error output why a node could not be reached.
import { redactSecrets } from "#os/redact.ts";
import { sshFingerprint } from "#os/ssh-keyscan.ts";
import type { SshTarget } from "./ssh-target.ts";

/** The reason why there is no connection. */
export interface SshRefusal {
  readonly reason: "HOST_KEY_CHANGED" | "KEY_FILE_UNSAFE" | "KEY_REFUSED" | "CONNECT_FAILED";
  /** A sentence for people; holds no secret. */
  readonly message: string;
  /** With HOST_KEY_CHANGED: `SHA256:…` of the pinned key, and of the presented one if ssh named it. */
  readonly hostKeys?: { readonly pinned: string; readonly shown?: string };
}

const MESSAGE_MAX_LENGTH = 300;
const OTHER_HOST_KEY =
  /REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|no matching host key type found|host key is known for/i;
const NOT_LET_IN =
  /Permission denied|Too many authentication failures|Load key .*:|incorrect passphrase|No more authentication methods/i;
const SHOWN = /SHA256:[A-Za-z0-9+/]{43}/;

/** Parses ssh's error output; never throws. */
export function readComplaint(complaint: string, target: SshTarget): SshRefusal {
  const at = `${target.user}@${target.host} port ${target.port}`;
  if (OTHER_HOST_KEY.test(complaint)) {
    const pinned = sshFingerprint(target.hostKey);
    const shown = SHOWN.exec(complaint)?.[0];
    const what = shown === undefined ? "a key of another type" : shown;
    return {
      reason: "HOST_KEY_CHANGED",
      message: `the host at ${at} shows ${what}, pinned is ${pinned}; nothing was sent. If its key was changed on purpose, enrol the node again`,
      hostKeys: { pinned, ...(shown === undefined ? {} : { shown }) },
    };
  }
  const line = complaintLine(complaint);
  if (NOT_LET_IN.test(complaint))
    return { reason: "KEY_REFUSED", message: `${at} does not take our key: ${line}` };
  return { reason: "CONNECT_FAILED", message: `${at} cannot be reached: ${line}` };
}

/** The last line of ssh or of a node's shell: printable, scrubbed, short. */
export function complaintLine(complaint: string): string {
  const lines = complaint.split(/[\r\n]+/).map((line) => line.replace(/[^\x20-\x7e]/g, "?").trim());
  const last = lines.findLast((line) => line !== "") ?? "no reason was given";
  return redactSecrets(last).slice(0, MESSAGE_MAX_LENGTH);
}
