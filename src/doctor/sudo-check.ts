// Checks that the console's user may run its actions' commands by sudo without a password (T16, D20).
import { errorText } from "#base/log.ts";
import { sudoListing } from "#os/sudo-rights.ts";
import { type Check, type Finding, failed, ok, warning } from "./finding.ts";

/** The command lines of packaging/sudoers.d/svc, which a test compares. */
export const ACTION_COMMANDS: readonly string[] = [
  "/usr/bin/systemctl restart svc-fileserver",
  "/usr/bin/systemctl restart svc-metaserver",
  "/usr/bin/systemctl restart svc-admin",
  "/usr/bin/journalctl ^-u svc-(fileserver|metaserver|admin) -n [0-9]+( -f)? --no-pager -o json$",
  '/usr/sbin/reboot ""',
  "/usr/bin/apt-get update",
  "/usr/bin/apt-get upgrade -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confold",
];

const NAME = "sudo for actions";
const TODO =
  "As root: install -m 440 packaging/sudoers.d/svc /etc/sudoers.d/svc && visudo -c, with the right user in its last line.";

/** Checks the rights of the current user. */
export function sudoCheck(): Check {
  return {
    name: NAME,
    async run(signal) {
      let listing: string;
      try {
        listing = await sudoListing(signal);
      } catch (error) {
        return [failed(NAME, `this user may run nothing without a password (${errorText(error)})`, TODO)];
      }
      return [sudoFinding(listing)];
    },
  };
}

/** The finding about the actions in a listing of `sudo -n -l`. */
export function sudoFinding(listing: string): Finding {
  const allowed = withoutPassword(listing);
  if (allowed.has("ALL")) {
    const what = "this user may run everything as root, and so may whoever holds the console's key";
    return warning(NAME, what, "Allow no more than packaging/sudoers.d/svc does.");
  }
  const lacking = ACTION_COMMANDS.filter((line) => !allowed.has(line));
  if (lacking.length === 0) return ok(NAME, `all ${ACTION_COMMANDS.length} command lines are allowed`);
  return failed(NAME, `not allowed without a password: ${lacking.join("; ")}`, TODO);
}

/** The command lines that are allowed as root without a password. */
function withoutPassword(listing: string): Set<string> {
  const allowed = new Set<string>();
  // Sudo wraps the listing unless it goes to a pipe.
  for (const line of listing.replaceAll(/\n {8}/g, " ").split("\n")) {
    const [, users, rest] = /^ {4}\(([^)]*)\) (.*)$/.exec(line) ?? [];
    if (users === undefined || rest === undefined) continue;
    if (!/^(?:root|ALL)(?: |$)/.test(users)) continue;
    let isFree = false;
    for (const item of rest.split(", ")) {
      // A tag applies to the commands after it, too.
      const [, tags = "", command = ""] = /^((?:[A-Z]+: )*)(.*)$/s.exec(item) ?? [];
      if (tags.includes("NOPASSWD: ")) isFree = true;
      else if (tags.includes("PASSWD: ")) isFree = false;
      if (isFree) allowed.add(command.replaceAll(/\\([,:=\\])/g, "$1"));
    }
  }
  return allowed;
}
