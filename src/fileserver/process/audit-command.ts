// `grove audit verify`: checks the hash chains of an audit log, of a node or of the console with its copies.
import { Command } from "commander";
import { GroveError } from "#base/errors.ts";
import { stringify64 } from "#base/json64.ts";
import { type AuditVerdict, verifyAudit } from "#security/audit/verify-audit.ts";
import { type CopyVerdict, compareCopies, hasCopies, verifyCopies } from "#security/audit/verify-copies.ts";

const HELP = `
Every act that somebody may have to answer for gets a line: quotas set, shares, permanent deletes, purges of the trash,
security events, sign-ins, what operators do in the console. Each line holds the SHA-256 of the line before it, and
audit/head.json the hash of the last one: whoever changes, removes or inserts a line, or cuts the end off, breaks the chain.
Whoever can also rewrite all that follows and head.json cannot be seen in that folder alone. The console pulls every node's
lines twice a minute: with its data folder, all that it has gathered is checked too, and -node with -against compares what was
gathered from a node with that node's own data folder.

The process may run meanwhile. Exit code: 0 when all chains hold, 1 when one does not.

Examples:
  grove audit verify -data /srv/grove
  grove audit verify -data /srv/grove-meta                        what a MetaServer did: app passwords, groups, joined nodes
  grove audit verify -data /srv/grove-admin
  grove audit verify -data /srv/grove-admin -node fs-1 -against /srv/grove`;

interface Flags {
  readonly data: string;
  readonly node?: string;
  readonly against?: string;
  readonly json: boolean;
}

/** The parser of `grove audit`. */
export function command(): Command {
  const verify = new Command("verify")
    .summary("Follow the chain from the first line to the last")
    .description("Follow the chains of an audit log and name the first line that breaks each.")
    .requiredOption("--data <folder>", "the data folder of the process that wrote the log, or of the console")
    .option("--node <id>", "with -against: whose gathered lines to compare")
    .option("--against <folder>", "that node's data folder")
    .option("--json", "print the result as JSON", false)
    .addHelpText("after", HELP)
    .action(verifyAll);
  return new Command("audit")
    .summary("Check audit logs")
    .description("Check that the audit log of a process, kept in its data folder, is whole.")
    .addCommand(verify)
    .addHelpText("after", "\nExamples:\n  grove audit verify -data /srv/grove");
}

/** The findings of all chains. */
interface Findings {
  readonly own: AuditVerdict;
  readonly gathered: readonly CopyVerdict[];
  readonly compared: Awaited<ReturnType<typeof compareCopies>> | undefined;
}

async function verifyAll({ data, node, against, json }: Flags): Promise<void> {
  if ((node === undefined) !== (against === undefined)) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "-node and -against belong together: whose lines, and where they are",
    );
  }
  const findings: Findings = {
    own: await verifyAudit(data),
    gathered: hasCopies(data) ? await verifyCopies(data) : [],
    compared:
      node === undefined || against === undefined ? undefined : await compareCopies(data, node, against),
  };
  const ok = isOk(findings);
  process.stdout.write(json ? `${stringify64(toJson(findings, ok), 2)}\n` : inWords(findings, node ?? ""));
  if (!ok) process.exitCode = 1;
}

function isOk({ own, gathered, compared }: Findings): boolean {
  return (
    own.broken === undefined &&
    gathered.every(({ broken }) => broken.length === 0) &&
    (compared?.differences ?? []).length === 0
  );
}

function toJson({ own, gathered, compared }: Findings, ok: boolean): object {
  return {
    ok,
    ...own,
    ...(gathered.length === 0 ? {} : { gathered }),
    ...(compared === undefined ? {} : { compared }),
  };
}

function inWords({ own, gathered, compared }: Findings, node: string): string {
  const text = ownInWords(own) + gathered.map(gatheredInWords).join("");
  if (compared === undefined) return text;
  if (compared.differences.length === 0) {
    return `${text}OK ${node}: ${compared.compared} lines are the same in its log and as they were gathered\n`;
  }
  return text + compared.differences.map((difference) => `DIFFERENT ${node}: ${difference}\n`).join("");
}

function ownInWords({ lines, first, last, broken, notes }: AuditVerdict): string {
  const said = notes.map((note) => `note: ${note}\n`).join("");
  if (broken !== undefined) return `${said}BROKEN: ${broken}\n`;
  if (first === undefined || last === undefined) return `${said}OK: no lines yet\n`;
  return `${said}OK: ${lines} lines, ${first.seq} (${first.time}) to ${last.seq} (${last.time})\n`;
}

function gatheredInWords({ source, lines, first, last, broken, notes }: CopyVerdict): string {
  const said = notes.map((note) => `note ${source}: ${note}\n`).join("");
  const breaks = said + broken.map((why) => `BROKEN ${source}: ${why}\n`).join("");
  if (broken.length === 0 && first !== undefined && last !== undefined) {
    return `${said}OK ${source}: ${lines} gathered lines, ${first.seq} (${first.time}) to ${last.seq} (${last.time})\n`;
  }
  if (breaks !== "" || first === undefined || last === undefined) return breaks;
  return `OK ${source}: ${lines} gathered lines, ${first.seq} (${first.time}) to ${last.seq} (${last.time})\n`;
}
