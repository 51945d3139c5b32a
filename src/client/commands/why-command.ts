// The verb `why`: shows step by step why something may or may not be read, written or deleted.
import { Argument, Command, InvalidArgumentError } from "commander";
import { formatBytes, parseBytes } from "#base/bytes.ts";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import type { ClientContext } from "#client/connection/client-context.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { SHORT } from "#client/connection/cluster.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { explainRefusal } from "#client/connection/error-text.ts";
import { formatRemotePath, type RemotePath } from "#client/connection/remote-path.ts";
import { EXIT, EXIT_OF_REFUSAL } from "#client/terminal/exit-codes.ts";
import { Perm } from "#wire/proto/gen/grove/v1/common_pb.ts";
import type { ExplainResponse } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { errorCodeOf } from "#wire/proto/status-table.ts";

interface WhyFlags extends ClientFlags {
  readonly size?: bigint;
}

const WANTS = ["read", "write", "delete"] as const;
type Want = (typeof WANTS)[number];

const PERMISSIONS: Readonly<Record<Want, Perm>> = {
  read: Perm.READ,
  write: Perm.WRITE,
  delete: Perm.DELETE,
};

/** Access to a root is checked by the metaserver first, then by the FileServer: both refuse with these. */
const DENIALS: readonly ErrorCode[] = ["NOT_OWNER", "NOT_SHARED"];

/** One line of the answer. */
interface Step {
  readonly check: string;
  readonly passed: boolean;
  readonly text: string;
}

/** The outcome, independent of the server that decided. */
interface Answer {
  readonly username: string;
  readonly owner: string;
  readonly address: string | undefined;
  readonly refusal: (Pick<GroveError, "message" | "metadata"> & { readonly reason: string }) | undefined;
  readonly steps: readonly Step[];
}

/** Makes the parser of `grove why`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("why")
      .description(
        "Show step by step why you may read, write or delete something, or why not: who you are, whose it is, which share gives " +
          "access, and for a write whether quota and disk have room. Nothing is changed. The exit code is 0 for yes, else that of the refusal.",
      )
      .argument("<path>", "a file or folder on the cluster, or one that is to be made")
      .addArgument(new Argument("[what]", "what you want to do").choices(WANTS).default("read"))
      .option("--size <bytes>", "how much a write would bring, such as 200MiB", parseSize),
    [
      ["grove why alice@example.com:/docs", "may I read it, and by which share?"],
      ["grove why /docs/report.pdf delete", "may I delete it?"],
      ["grove why /backup write --size 20GiB", "would 20 GiB fit?"],
    ],
  ).action((typed: string, want: Want, flags: WhyFlags) =>
    host.run("why", flags, async (context) => {
      const place = await context.resolve(typed);
      const answer = await ask(context, place, want, flags.size ?? 0n);
      await tell(context, { place, want, size: flags.size }, answer);
      return exitCodeOfAnswer(answer);
    }),
  );
}

async function ask(context: ClientContext, place: RemotePath, want: Want, size: bigint): Promise<Answer> {
  const cluster = await context.cluster();
  const request = { root: place.root, path: place.path, permission: PERMISSIONS[want], addBytes: size };
  let address: string | undefined;
  let reply: ExplainResponse;
  try {
    reply = await cluster.run(place.root, SHORT, (server) => {
      ({ address } = server);
      return server.files.explain(request, server.unary);
    });
  } catch (error) {
    if (!(error instanceof GroveError) || !DENIALS.includes(error.code)) throw error;
    // The metaserver does not reveal a root's address to strangers.
    const username = (await context.identity.current())?.username ?? "";
    return {
      username,
      owner: place.root,
      address: undefined,
      refusal: { reason: error.code, message: error.message, metadata: error.metadata },
      steps: [
        { check: "identity", passed: true, text: `you are ${username}` },
        { check: "route", passed: false, text: error.message },
      ],
    };
  }
  const { username, owner, reason, message, metadata } = reply;
  const route = { check: "route", passed: true, text: `the root is asked for at ${address}` };
  return {
    username,
    owner,
    address,
    refusal: reply.allowed ? undefined : { reason, message, metadata },
    steps: [...reply.steps.slice(0, 1), route, ...reply.steps.slice(1)],
  };
}

async function tell(
  context: ClientContext,
  question: { readonly place: RemotePath; readonly want: Want; readonly size: bigint | undefined },
  answer: Answer,
): Promise<void> {
  const { place, want, size } = question;
  const { username, owner, address, refusal, steps } = answer;
  const path = formatRemotePath(place);
  const { what, todo } = sentencesOf(refusal, path);
  if (context.isJson) {
    await context.printJson({
      allowed: refusal === undefined,
      permission: want,
      path: place.path,
      root: owner,
      username,
      fileserver: address ?? null,
      reason: refusal?.reason ?? null,
      message: what,
      hint: todo,
      metadata: refusal?.metadata ?? {},
      steps: steps.map(({ check, passed, text }) => ({ check, passed, text })),
    });
    return;
  }
  const bytes = size === undefined || want !== "write" ? "" : ` ${formatBytes(size)} to`;
  const may = refusal === undefined ? "Yes: you may" : "No: you may not";
  await context.print(
    `${may} ${want}${bytes} ${path}`,
    "",
    ...steps.map(({ passed, text }) => `  ${passed ? "ok" : "no"}  ${text}`),
    ...(refusal === undefined ? [] : ["", todo === "" ? what : `${what} ${todo}`]),
  );
}

function sentencesOf(refusal: Answer["refusal"], path: string): { what: string; todo: string } {
  if (refusal === undefined) return { what: "", todo: "" };
  const code = errorCodeOf(refusal.reason);
  if (code === undefined) return { what: refusal.message, todo: "" };
  return explainRefusal(code, { message: refusal.message, metadata: { ...refusal.metadata, path } });
}

function exitCodeOfAnswer({ refusal }: Answer): number {
  if (refusal === undefined) return EXIT.ok;
  const code = errorCodeOf(refusal.reason);
  return code === undefined ? EXIT.denied : EXIT_OF_REFUSAL[code];
}

function parseSize(text: string): bigint {
  const bytes = parseBytes(text);
  if (bytes === undefined || bytes >= 2n ** 64n) throw new InvalidArgumentError('write bytes, or "200MiB".');
  return bytes;
}
