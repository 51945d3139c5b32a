// Commands that this user may run as another without a password, in sudo's own words.
import { execFile } from "node:child_process";
import { GroveError } from "#base/errors.ts";

const LISTING_MAX_BYTES = 262_144;

/** The output of `sudo -n -l`. Throws BAD_ARGUMENT with sudo's reason, or when it is not installed. */
export function sudoListing(signal: AbortSignal): Promise<string> {
  const options = { signal, maxBuffer: LISTING_MAX_BYTES, env: { ...process.env, LC_ALL: "C" } };
  return new Promise((resolve, reject) => {
    execFile("sudo", ["-n", "-l"], options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      const isMissing = (error as NodeJS.ErrnoException).code === "ENOENT";
      const reason = isMissing ? "sudo is not installed" : stderr.trim().split("\n").at(-1);
      reject(new GroveError("BAD_ARGUMENT", reason ?? "sudo lists nothing", { cause: error }));
    });
  });
}
