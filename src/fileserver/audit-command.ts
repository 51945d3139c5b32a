// `grove audit verify`: follows the chain of a node's audit log and says whether it holds.
import { Command } from "commander";
import { type AuditVerdict, verifyAudit } from "#audit/verify-audit.ts";
import { stringify64 } from "#base/json64.ts";

const HELP = `
Every act that somebody may have to answer for gets a line: quotas set, shares, permanent deletes, purges of the trash,
security events, sign-ins. Each line holds the SHA-256 of the line before it, and audit/head.json the hash of the last one:
whoever changes, removes or inserts a line, or cuts the end off, breaks the chain. Whoever can also rewrite all that
follows and head.json cannot be seen here: compare with a copy that another machine has pulled from /audit.

The node may run meanwhile. Exit code: 0 when the chain holds, 1 when it does not.

Examples:
  grove audit verify -data /srv/grove
  grove audit verify -data /srv/grove --json`;

/** The parser of `grove audit`. */
export function command(): Command {
  const verify = new Command("verify")
    .summary("Follow the chain from the first line to the last")
    .description("Follow the chain of an audit log and name the first line that breaks it.")
    .requiredOption("--data <folder>", "the data folder of the process that wrote the log")
    .option("--json", "print the result as JSON", false)
    .addHelpText("after", HELP)
    .action(async (flags: { readonly data: string; readonly json: boolean }) => {
      const verdict = await verifyAudit(flags.data);
      process.stdout.write(
        flags.json ? `${stringify64({ ok: isOk(verdict), ...verdict }, 2)}\n` : inWords(verdict),
      );
      if (!isOk(verdict)) process.exitCode = 1;
    });
  return new Command("audit")
    .summary("Check the audit log of a storage node")
    .description("Check that the audit log of a process, kept in its data folder, is whole.")
    .addCommand(verify)
    .addHelpText("after", "\nExamples:\n  grove audit verify -data /srv/grove");
}

function isOk(verdict: AuditVerdict): boolean {
  return verdict.broken === undefined;
}

function inWords({ lines, first, last, broken, notes }: AuditVerdict): string {
  const said = notes.map((note) => `note: ${note}\n`).join("");
  if (broken !== undefined) return `${said}BROKEN: ${broken}\n`;
  if (first === undefined || last === undefined) return `${said}OK: no lines yet\n`;
  return `${said}OK: ${lines} lines, ${first.seq} (${first.time}) to ${last.seq} (${last.time})\n`;
}
