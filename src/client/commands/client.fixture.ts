// Runs verbs of the client inside a test, with its own configuration folder and captured output.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { Command, CommanderError } from "commander";
import { makeSharedParts } from "#client/connection/client-context.ts";
import { type CommandHost, closeShared, runAction } from "#client/connection/command-host.ts";
import { caughtTerminal, type GivenStreams } from "#client/terminal/command-here.fixture.ts";
import type { Terminal } from "#client/terminal/terminal.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { VerbModule } from "./verbs.ts";

/** The output and the exit code of a verb. */
export interface VerbResult {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Optional input of a verb in a test. */
export type VerbInput = Omit<GivenStreams, "env">;

/** A client with settings of its own. */
export interface TestClient {
  readonly folder: string;
  readonly config: string;
  env: Record<string, string>;
  /** Runs the verb of a module. */
  run(verb: Promise<VerbModule>, words: readonly string[], input?: VerbInput): Promise<VerbResult>;
  stop(): Promise<void>;
}

/** Makes a client with an empty configuration, and a folder for files. */
export async function makeTestClient(): Promise<TestClient> {
  const folder = scratchFolder("grove-client-");
  const config = join(folder, "config");
  const client: TestClient = {
    folder,
    config,
    // Long enough for a server that restarts, short where a test expects no server.
    env: { GROVE_CONFIG_DIR: config, GROVE_RETRY_SECONDS: "10" },
    run: async (verb, words, input = {}) => {
      try {
        return await runVerb(await verb, words, client.env, input);
      } catch (error) {
        if (!(error instanceof CommanderError)) throw error;
        return { code: error.exitCode, out: "", err: "" };
      }
    },
    stop: () => rm(folder, { recursive: true, force: true }),
  };
  return client;
}

/** Runs a verb to its end. Rejects with the parser's `CommanderError` where the words are wrong. */
export async function runVerb(
  module: VerbModule,
  words: readonly string[],
  env: Terminal["env"],
  input: VerbInput = {},
): Promise<VerbResult> {
  const { terminal, out, err } = caughtTerminal({ ...input, env });
  let code = -1;
  const host: CommandHost = {
    run: async (verb, flags, action) => {
      const shared = await makeSharedParts(env);
      code = await runAction({ verb, flags, terminal, shared }, action);
      await closeShared(shared);
    },
  };
  const parser = module.command(host);
  parser.exitOverride().configureOutput({ writeErr: () => undefined, writeOut: () => undefined });
  for (const child of parser.commands) child.copyInheritedSettings(parser);
  await new Command("grove").addCommand(parser).parseAsync([parser.name(), ...words], { from: "user" });
  return { code, out: out(), err: err() };
}
