// `grove admin password check|rotate`: changes the console's password, and lists the nodes' (T11, W-04).
import { stat } from "node:fs/promises";
import { Command } from "commander";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { passwordHashes, readPasswords } from "#console/operators/hash-password.ts";
import { OperatorPassword } from "#console/operators/operator-password.ts";
import { quotaDialer, type SetQuotaOnNode } from "#console/services/node-dial.ts";
import { openDirectoryReader } from "#metaserver/directory/open-directory.ts";
import { storeUrl } from "#metaserver/directory/store-url.ts";
import { readPrivateFile, writePrivateFile } from "#os/private-file.ts";
import { readPem } from "#security/authority/tls-material.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { askNodes, type NodeAnswer, type NodeToAsk, wordsFor } from "./password-probe.ts";

interface PasswordFlags {
  readonly passwordFile: string;
  readonly meta?: string;
  readonly metaFile?: string;
  readonly tlsCa?: string;
  readonly json: boolean;
}

const HELP = `
Reads passwords from the terminal without showing them, or as lines of standard input: for 'check' the password, for 'rotate' the present one and
the new one. Each node is asked over TLS whether it takes it; nothing there is changed.

Examples, as the user of the service, who owns the file:
  sudo -u grove grove admin password rotate -password_file /var/lib/grove/admin/password \\
    -meta sqlite:/var/lib/grove/metaserver/metadata.db -tls_ca /var/lib/grove/ca/ca.crt
  sudo -u grove grove admin password check -password_file /var/lib/grove/admin/password \\
    -meta sqlite:/var/lib/grove/metaserver/metadata.db -tls_ca /var/lib/grove/ca/ca.crt`;

/** The parser of `grove admin password`. */
export function passwordCommand(): Command {
  const group = new Command("password")
    .description("Put another operator's password in force, and see which nodes have it.")
    .addHelpText("after", HELP);
  withFlags(
    group
      .command("rotate")
      .description(
        "Put the hash of a new password into the console's file, and tell node by node what is left to be done.",
      ),
  ).action((_flags, command: Command) => rotate(flagsOf(command)));
  withFlags(
    group.command("check").description("Tell node by node whether it has the console's password."),
  ).action((_flags, command: Command) => check(flagsOf(command)));
  return group;
}

function withFlags(command: Command): Command {
  return command
    .option("--password-file <file>", "the console's file with the password's hash")
    .option("--meta <url>", "metadata store of the MetaServer: sqlite:PATH, or postgres://USER@HOST/DATABASE")
    .option("--meta-file <file>", "file with that URL in its first line, for one that holds a password")
    .option("--tls-ca <file>", "authority of the cluster, for calls to FileServers, PEM")
    .option("--json", "print JSON", false);
}

/** MetaServers take the password only for `grove user`, and cannot be asked for it. */
const METASERVERS =
  "A MetaServer that has ADMIN_PASSWORD_HASH takes the password before until it is started with the new line too.";

/** Flags with the names of the console's own: the parser assigns them to the console wherever they stand. */
function flagsOf(command: Command): PasswordFlags {
  const { passwordFile, ...flags } = command.optsWithGlobals<Partial<PasswordFlags>>();
  if (passwordFile === undefined)
    throw new GroveError("BAD_ARGUMENT", "give -password_file: the one that the console has");
  return { json: false, ...flags, passwordFile };
}

async function check(flags: PasswordFlags): Promise<void> {
  const [present = ""] = await readPasswords(["Password: "]);
  await requirePresent(flags, present);
  await tell(flags, { asked: await askable(flags), hashes: [adminPasswordHash(present)], isRotation: false });
}

async function rotate(flags: PasswordFlags): Promise<void> {
  const { passwordFile } = flags;
  await requireOwnFile(passwordFile);
  const [present = "", next = "", again = next] = await readPasswords([
    "Present password: ",
    "New password: ",
    "Again: ",
  ]);
  await requirePresent(flags, present);
  if (next !== again)
    throw new GroveError("BAD_ARGUMENT", "those were two different passwords; nothing was changed");
  if (next === present)
    throw new GroveError("BAD_ARGUMENT", "that is the present password; nothing was changed");
  // Validates all flags before any change.
  const asked = await askable(flags);
  const { sha256, argon2 } = passwordHashes(next);
  const isArgon2 = (await readPrivateFile(passwordFile))?.startsWith("$") === true;
  await writePrivateFile(passwordFile, `${isArgon2 ? argon2 : sha256}\n`);
  if (!flags.json)
    process.stdout.write(
      `${passwordFile} has the new password. Send the console SIGHUP: every operator is signed out and signs in with it.\n`,
    );
  await tell(flags, { asked, hashes: [sha256, adminPasswordHash(present)], isRotation: true });
}

/**
 * The file's owner must be this user: a replaced file is owned by its writer, and the console must be able to
 * read it.
 */
async function requireOwnFile(path: string): Promise<void> {
  const found = await stat(path).catch(() => undefined);
  if (found === undefined || found.uid === process.getuid?.()) return;
  throw new GroveError(
    "BAD_ARGUMENT",
    `${path} belongs to another user: run this as that one, as whom the console runs`,
  );
}

async function requirePresent({ passwordFile: file }: PasswordFlags, password: string): Promise<void> {
  const present = await OperatorPassword.open({ env: {}, file });
  if (await present.matches(adminPasswordHash(password))) return;
  throw new GroveError("BAD_ARGUMENT", `that is not the password of ${file}; nothing was changed`);
}

/** The nodes, and how they are called. */
interface Askable {
  readonly nodes: readonly NodeToAsk[];
  readonly setQuota: SetQuotaOnNode;
}

async function askable(flags: PasswordFlags): Promise<Askable> {
  const ca = flags.tlsCa === undefined ? undefined : await readPem(flags.tlsCa);
  return { nodes: await nodesOf(flags), setQuota: quotaDialer(ca) };
}

/** Asks every node for the first of the passwords, then for the second, and prints the answers. */
async function tell(
  flags: PasswordFlags,
  how: { readonly asked: Askable; readonly hashes: readonly string[]; readonly isRotation: boolean },
): Promise<void> {
  const { asked, hashes, isRotation } = how;
  const answers = await askNodes(asked.nodes, { hashes, setQuota: asked.setQuota });
  if (flags.json) {
    const nodes = answers.map(({ id, state }) => ({ id, state }));
    process.stdout.write(`${JSON.stringify({ rotated: isRotation, nodes }, null, 2)}\n`);
    return;
  }
  for (const answer of answers) process.stdout.write(`  ${answer.id}: ${wordsFor(answer)}\n`);
  process.stdout.write(`${leftOf(answers)}\n`);
  if (isRotation) process.stdout.write(`${METASERVERS}\n`);
}

function leftOf(answers: readonly NodeAnswer[]): string {
  const left = answers.filter(({ state }) => state !== "same");
  if (left.length === 0) return "All nodes have it.";
  return `${left.length} of ${answers.length} nodes are left: put the line of the file into ADMIN_PASSWORD_HASH there, start the FileServer again, and look with 'grove admin password check'.`;
}

async function nodesOf(flags: PasswordFlags): Promise<NodeToAsk[]> {
  const url = await storeUrl(flags);
  if (url === undefined)
    throw new GroveError("BAD_ARGUMENT", "give -meta (or -meta_file), so that the nodes are known");
  const directory = await openDirectoryReader(url, { clock: systemClock });
  try {
    return (await directory.nodes()).map(({ fsId: id, address }) => ({ id, address }));
  } finally {
    await directory.close();
  }
}
