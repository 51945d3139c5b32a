// The flags of `put` and `get` that skip files already there.
import type { Command } from "commander";
import type { ClientFlags } from "#client/connection/client-flags.ts";
import { BY_CHECKSUM, BY_TIME, type Sameness } from "./sameness.ts";
import type { TypedFlags } from "./transfer-messages.ts";

/** The flags of both verbs. */
export interface TransferFlags extends ClientFlags {
  readonly recursive?: boolean;
  readonly quiet?: boolean;
  readonly update?: boolean;
  readonly checksum?: boolean;
  readonly delete?: boolean;
  readonly yes?: boolean;
}

/** Adds the flags to a verb's parser; `away` says where surplus entries go. */
export function withTransferFlags(command: Command, away: string): Command {
  return command
    .option("-r, --recursive", "folders with all that is in them (also without it, when a folder is named)")
    .option("-u, --update", "leave out files that are there with the same size and time of change")
    .option(
      "--checksum",
      "leave out files that are there with the same size and content, whatever their times",
    )
    .option("--delete", `like --update, and then ${away}; asks first`)
    .option("-y, --yes", "do not ask")
    .option("-q, --quiet", "say nothing unless something fails");
}

/** The rule for skipped files; undefined to transfer all. */
export function wantedSameness(flags: TransferFlags): Sameness | undefined {
  if (flags.checksum === true) return BY_CHECKSUM;
  return flags.update === true || flags.delete === true ? BY_TIME : undefined;
}

/** The flags that repeat the same command. */
export function repeatedFlags(flags: TransferFlags): TypedFlags {
  const { recursive, update, checksum, yes, metaserver, fileserver, ca } = flags;
  return { r: recursive, update, checksum, delete: flags.delete, yes, metaserver, fileserver, ca };
}
