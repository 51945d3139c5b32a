// The options that all verbs share, declared once.
import type { Command } from "commander";
import type { ConnectionFlags } from "#client/signin/profile.ts";

/** Values of the shared options. */
export interface ClientFlags extends ConnectionFlags {
  readonly json?: boolean | undefined;
  readonly verbose?: boolean | undefined;
}

/** Adds the shared options and the examples, each a line of "what it does" and the command. */
export function withClientFlags(command: Command, examples: readonly (readonly [string, string])[]): Command {
  const width = Math.max(...examples.map(([line]) => line.length));
  const lines = examples.map(([line, what]) => `  ${line.padEnd(width)}   ${what}`);
  return command
    .option("--json", "print JSON; errors too, on standard error")
    .option("--verbose", "tell each request's id, as the servers log it")
    .option("--metaserver <host:port,…>", "the cluster (SVC_METASERVER; else as at login)")
    .option("--fileserver <host:port>", "one server alone, without a metaserver")
    .option("--ca <file>", "the cluster's authority (SVC_CLUSTER_CA)")
    .addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}
