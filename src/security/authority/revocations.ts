// The list of revoked certificates: serial numbers in a text file.
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { removeLeftovers, writeFileAtomic } from "#os/atomic-file.ts";
import { changeAlone } from "#os/file-lock.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import { CERTIFICATE_CHECK_INTERVAL_MS, fileStamp } from "./file-stamp.ts";
import { normalSerial } from "./issued-certificates.ts";

/** Serial numbers on the list of revoked certificates. */
const REVOKED_CERTIFICATES_MAX = 100_000;

const SERIAL = /^(?:0x)?[0-9a-f]{1,40}$/i;

/**
 * Reads the list: a serial number per line, with an optional comment after a blank. Throws BAD_ARGUMENT with
 * the number of a malformed line.
 */
export async function readRevoked(path: string): Promise<ReadonlySet<string>> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  });
  const revoked = new Set<string>();
  for (const [index, line] of text.split("\n").entries()) {
    const [word = ""] = line.trim().split(/\s/, 1);
    if (word === "" || word.startsWith("#")) continue;
    if (!SERIAL.test(word)) {
      throw new GroveError(
        "BAD_ARGUMENT",
        `${path}, line ${index + 1}: a certificate's serial number is hexadecimal`,
      );
    }
    revoked.add(normalSerial(word.replace(/^0x/i, "")));
  }
  if (revoked.size > REVOKED_CERTIFICATES_MAX) {
    throw new GroveError("BAD_ARGUMENT", `${path} lists more than ${REVOKED_CERTIFICATES_MAX} certificates`);
  }
  return revoked;
}

/**
 * Adds a serial number to the list, with a comment; calls at once, of several processes, take turns. Throws the
 * system's error for a list that it cannot read, and DATA_IN_USE when another call takes longer than ten seconds.
 */
export async function revoke(path: string, serial: string, note: string): Promise<void> {
  makePrivateFolder(dirname(path));
  await changeAlone(
    `${path}.lock`,
    `${path} is being changed by another process; once that has ended, revoke ${serial} again`,
    () => addEntry(path, `${serial} ${note}`),
  );
}

async function addEntry(path: string, entry: string): Promise<void> {
  await removeLeftovers(path);
  const before = await readFile(path, "utf8").catch((error: unknown) => {
    // Any other failure must not put an empty list in the place of one that is there.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return "# Serial numbers of certificates that no longer count.\n";
  });
  await writeFileAtomic(path, `${before}${before.endsWith("\n") ? "" : "\n"}${entry}\n`, { mode: 0o644 });
}

/** A list that follows its file. */
export interface Revocations {
  /** True for a serial number in hex that is on the list. */
  isRevoked(serial: string): boolean;
  close(): void;
}

/**
 * Reads the list and checks every five seconds whether it has changed. An unreadable file leaves the list as
 * it was, and is read again at each check.
 */
export async function openRevocations(
  path: string,
  deps: {
    readonly clock: Clock;
    readonly log: Logger;
    /** Reads the list; tests inject failures here. */
    readonly read?: typeof readRevoked;
  },
): Promise<Revocations> {
  const read = deps.read ?? readRevoked;
  let seen = await fileStamp(path);
  let revoked = await read(path);
  let problem: string | undefined;
  let isChecking = false;
  const check = async (): Promise<void> => {
    if (isChecking) return;
    isChecking = true;
    try {
      const stamp = await fileStamp(path);
      if (stamp === seen) return;
      revoked = await read(path);
      seen = stamp;
      problem = undefined;
      deps.log.info("revocations_read", { count: revoked.size });
    } catch (error) {
      const text = errorText(error);
      if (text !== problem) deps.log.error("revocations_unreadable", { error: text });
      problem = text;
    } finally {
      isChecking = false;
    }
  };
  const cancel = deps.clock.every(CERTIFICATE_CHECK_INTERVAL_MS, () => void check());
  return { isRevoked: (serial) => revoked.has(normalSerial(serial)), close: cancel };
}
