// The shape of a table of commands.
import type { Command } from "commander";

/** The export of a command's module. */
export interface CommandModule {
  /** Makes the parser of this command: options, help text with examples, action. */
  readonly command: () => Command;
}

/** One row of `grove --help`. */
export interface CommandEntry {
  readonly name: string;
  /** One sentence without a full stop for `grove --help`. */
  readonly summary: string;
  /** True for a process that runs until it is stopped: a crash prints its stack, as only the log remains. */
  readonly server?: true;
  /** True for a command that moves whole files: its heap is configured like a server's. */
  readonly content?: true;
  readonly load: () => Promise<CommandModule>;
}

/** A heading of `grove --help` with its commands, in a newcomer's order of need. */
export interface CommandGroup {
  readonly title: string;
  readonly commands: readonly CommandEntry[];
}
