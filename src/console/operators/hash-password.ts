// `grove admin hash-password`: computes both forms of ADMIN_PASSWORD_HASH from a password (T11, W-01).
import { argon2Sync, randomBytes } from "node:crypto";
import { Command } from "commander";
import { GroveError } from "#base/errors.ts";
import { readHiddenLine } from "#os/hidden-input.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";

/** Shortest accepted password: one for a whole cluster must not be guessable from its bare SHA-256 (W-01). */
const PASSWORD_MIN_LENGTH = 15;
const PASSWORD_MAX_LENGTH = 1_024;
/** OWASP's parameters for Argon2id: 19 MiB, two passes, one lane; tens of milliseconds. */
const ARGON2 = { memory: 19_456, passes: 2, parallelism: 1, tagLength: 32 } as const;
const SALT_BYTES = 16;

const HELP = `
Reads the password from the terminal without showing it, or the first line of standard input. It is never an argument,
and has at least ${PASSWORD_MIN_LENGTH} characters.

Prints two lines of which either goes into ADMIN_PASSWORD_HASH, or into the file of -password_file, of console and FileServers:
  $argon2id$…   cannot be turned back into the password, nor used in its place: the better one
  64 hex        as other implementations know it; whoever reads it can set quotas with it (x-admin-password-hash)

Examples:
  grove admin hash-password
  pwgen -s 24 1 | tee /dev/tty | grove admin hash-password -argon2 > /var/lib/grove/admin/password`;

/** The parser of `grove admin hash-password`. */
export function hashPasswordCommand(): Command {
  return new Command("hash-password")
    .description("Turn the operator's password into what ADMIN_PASSWORD_HASH holds.")
    .option("--argon2", "print the Argon2id form alone")
    .option("--sha256", "print the SHA-256 form alone")
    .addHelpText("after", HELP)
    .action(async (flags: { readonly argon2?: boolean; readonly sha256?: boolean }) => {
      const forms = passwordHashes(await readPassword());
      const isBoth = flags.argon2 === flags.sha256;
      if (isBoth || flags.argon2 === true) process.stdout.write(`${forms.argon2}\n`);
      if (isBoth || flags.sha256 === true) process.stdout.write(`${forms.sha256}\n`);
    });
}

/** Both forms of a password. Throws BAD_ARGUMENT for one of fewer than 15 characters. */
export function passwordHashes(password: string): { readonly sha256: string; readonly argon2: string } {
  if (password.length < PASSWORD_MIN_LENGTH) {
    throw new GroveError("BAD_ARGUMENT", `the password must have at least ${PASSWORD_MIN_LENGTH} characters`);
  }
  const sha256 = adminPasswordHash(password);
  const nonce = randomBytes(SALT_BYTES);
  const tag = argon2Sync("argon2id", { message: sha256, nonce, ...ARGON2 });
  const { memory, passes, parallelism } = ARGON2;
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64").replaceAll("=", "");
  return {
    sha256,
    argon2: `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${text(nonce)}$${text(tag)}`,
  };
}

async function readPassword(): Promise<string> {
  if (!process.stdin.isTTY) return readFirstLine(process.stdin);
  const [first = "", second] = await readPasswords(["Password: ", "Again:    "]);
  if (first === second) return first;
  throw new GroveError("BAD_ARGUMENT", "those were two different passwords");
}

/**
 * Answers to questions at the terminal, without echo; otherwise at most that many lines of input. Throws
 * BAD_ARGUMENT.
 */
export async function readPasswords(questions: readonly string[]): Promise<string[]> {
  const { stdin, stderr } = process;
  if (!stdin.isTTY) return readLines(stdin, questions.length);
  const answers: string[] = [];
  for (const question of questions) {
    stderr.write(question);
    const line = await readHiddenLine(stdin, PASSWORD_MAX_LENGTH);
    stderr.write("\n");
    if (line === undefined) throw new GroveError("BAD_ARGUMENT", "interrupted");
    answers.push(line);
  }
  return answers;
}

async function readLines(input: AsyncIterable<Buffer | string>, count: number): Promise<string[]> {
  let text = "";
  for await (const piece of input) {
    text += piece.toString();
    if (text.length > count * PASSWORD_MAX_LENGTH) break;
  }
  const lines = text.split("\n").map((line) => line.replace(/\r$/, ""));
  // The text behind the last newline is empty, and no line.
  if (lines.at(-1) === "") lines.pop();
  return lines.slice(0, count);
}

async function readFirstLine(input: AsyncIterable<Buffer | string>): Promise<string> {
  let text = "";
  for await (const piece of input) {
    text += piece.toString();
    if (text.includes("\n") || text.length > PASSWORD_MAX_LENGTH) break;
  }
  return (text.split("\n", 1)[0] ?? "").replace(/\r$/, "").slice(0, PASSWORD_MAX_LENGTH);
}
