// The options that all verbs share, declared once.
import type { Command } from "commander";
import type { ConnectionFlags } from "./profile.ts";

/** Values of the shared options. */
export interface ClientFlags extends ConnectionFlags {
  readonly json?: boolean | undefined;
  readonly verbose?: boolean | undefined;
}

/** Adds the shared options, and after the options the examples, each a line of "what it does" and the command. */
export function withClientFlags(command: Command, examples: readonly (readonly [string, string])[]): Command {
  const width = Math.max(...examples.map(([line]) => line.length));
  const lines = examples.map(([line, what]) => `  ${line.padEnd(width)}   ${what}`);
  return command
    .option(
      "--json",
      'print JSON for programs; errors as {"error":{code,reason,message,hint,metadata}} on standard error',
    )
    .option("--verbose", "tell on standard error the id of every request, which the servers' logs name too")
    .option(
      "--metaserver <host:port,…>",
      "the cluster's metaserver (SVC_METASERVER; else the profile of 'grove login')",
    )
    .option("--fileserver <host:port>", "ask this fileserver directly, without a metaserver")
    .option("--ca <file>", "certificate of the cluster's authority (SVC_CLUSTER_CA; else the profile)")
    .addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
}
