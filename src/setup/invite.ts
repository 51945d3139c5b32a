// `grove init invite`: a file of answers for the next machine, with a join token in it.
import { resolve } from "node:path";
import { Command, InvalidArgumentError, Option } from "commander";
import { systemClock } from "#base/clock.ts";
import { parseDuration } from "#base/duration.ts";
import { GroveError } from "#base/errors.ts";
import { JOIN_TOKEN_LIFETIME_MAX_MS } from "#base/limits.ts";
import { checkedNodeId } from "#base/node-id.ts";
import { say, type Terminal } from "#client/terminal/terminal.ts";
import { createPrivateFile } from "#os/private-file.ts";
import { openAuthority } from "#security/authority/authority.ts";
import { JoinTokens } from "#security/authority/join-tokens.ts";
import { answersText, rolesOf } from "./answers.ts";
import { presentHash } from "./certificates.ts";
import { openMachine } from "./machine.ts";
import { dataFolders, metaserversOf } from "./plan.ts";
import { authorityAnswer, authorityPem } from "./provider.ts";
import { readRecord } from "./record.ts";

const LIFETIME_MS = 3_600_000;

interface InviteFlags {
  readonly out?: string;
  readonly ttl: number;
  readonly below?: string;
}

/** The parser of `grove init invite`. */
export function inviteCommand(terminal: Terminal): Command {
  return new Command("invite")
    .argument("<id>", "the new node's id, such as n2")
    .argument("<name>", "the name by which other machines reach it, such as n2.example.net")
    .description("Make the file of answers with which another machine becomes a node of this cluster.")
    .option("--out <file>", "where it goes (default: ID.answers here)")
    .addOption(
      new Option("--ttl <time>", "how long its token is good: 30m, 1h, 7d at most")
        .argParser(parseTtl)
        .default(LIFETIME_MS, "1h"),
    )
    .addHelpText(
      "after",
      "\nExamples:\n  grove init invite n2 n2.example.net        on the MetaServer's machine; then copy n2.answers to n2\n" +
        "  grove init -answers n2.answers             on n2\n\nThe file holds a token, which is good once: keep it to yourself, and remove it afterwards.",
    )
    .action((id: string, name: string, _flags: unknown, command: Command) =>
      invite(id, name, command.optsWithGlobals(), terminal),
    );
}

async function invite(id: string, name: string, flags: InviteFlags, terminal: Terminal): Promise<void> {
  const machine = openMachine(flags.below);
  const record = await readRecord(machine.settings);
  if (record === undefined || !rolesOf(record.answers).includes("metaserver")) {
    throw new GroveError(
      "BAD_ARGUMENT",
      "this is not the MetaServer's machine, or 'grove init' has not run here",
    );
  }
  const isConsole = rolesOf(record.answers).includes("console");
  // Nodes need the password that the console has now.
  const hash = isConsole ? await presentHash(record.answers) : undefined;
  const answers = { ...record.answers, ...(hash === undefined ? {} : { password_hash: hash }) };
  const { authority: folder } = dataFolders(answers);
  const authority = await openAuthority(folder, { clock: systemClock });
  const tokens = new JoinTokens(authority.folder, systemClock);
  const token = await tokens.make({
    fingerprint: authority.fingerprint,
    id: checkedNodeId(id),
    hosts: undefined,
    lifetimeMs: flags.ttl,
  });
  await machine.give([folder]);
  const ends = new Date(systemClock.wallMs() + flags.ttl).toISOString();
  const pem = await authorityPem(answers.provider_ca ?? "", answers);
  const text = answersText(
    `Answers for 'grove init' on ${id}; the token is a secret, good once, until ${ends}.`,
    {
      roles: "fileserver",
      name,
      id,
      metaserver: metaserversOf(answers),
      token,
      ...(pem === undefined ? {} : { provider_ca: authorityAnswer(pem) }),
      ...pick(answers, ["provider", "client_id", "operator", "password_hash", "metrics_token"]),
    },
  );
  const path = resolve(flags.out ?? `${id}.answers`);
  await createPrivateFile(path, text).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new GroveError(
      "BAD_ARGUMENT",
      `${path} is there already and is not replaced: remove it, or give -out`,
    );
  });
  say(
    terminal,
    `${path} makes ${name} the node ${id}, until ${ends}. Copy it there, then on ${id}:`,
    `  grove init -answers ${id}.answers && systemctl start svc-fileserver && rm ${id}.answers`,
  );
}

function pick<K extends string>(
  from: Readonly<Partial<Record<K, string>>>,
  keys: readonly K[],
): Partial<Record<K, string>> {
  return Object.fromEntries(
    keys.flatMap((key) => (from[key] === undefined ? [] : [[key, from[key]]])),
  ) as Partial<Record<K, string>>;
}

function parseTtl(text: string): number {
  const ttlMs = parseDuration(text) ?? 0;
  if (ttlMs > 0 && ttlMs <= JOIN_TOKEN_LIFETIME_MAX_MS) return ttlMs;
  throw new InvalidArgumentError("write a time such as 30m, 2h or 1d, at most 7d.");
}
