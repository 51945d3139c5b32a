// The flags of `put` and `get` that leave out what is there already.
import type { Command } from "commander";
import type { ClientFlags } from "./client-flags.ts";
import { BY_CHECKSUM, BY_TIME, type Sameness } from "./sameness.ts";
import type { TypedFlags } from "./transfer-words.ts";

/** What both verbs take. */
export interface TransferFlags extends ClientFlags {
  readonly recursive?: boolean;
  readonly quiet?: boolean;
  readonly update?: boolean;
  readonly checksum?: boolean;
}

/** Adds the flags to a verb's parser. */
export function withTransferFlags(command: Command): Command {
  return command
    .option("-r, --recursive", "folders with all that is in them (also without it, when a folder is named)")
    .option("-u, --update", "leave out files that are there with the same size and time of change")
    .option(
      "--checksum",
      "leave out files that are there with the same size and content, whatever their times",
    )
    .option("-q, --quiet", "say nothing unless something fails");
}

/** What is to be left out; undefined for nothing. */
export function wantedSameness({ update, checksum }: TransferFlags): Sameness | undefined {
  if (checksum === true) return BY_CHECKSUM;
  return update === true ? BY_TIME : undefined;
}

/** The flags that a command needs again to do the same. */
export function repeatedFlags(flags: TransferFlags): TypedFlags {
  const { recursive, update, checksum, metaserver, fileserver, ca } = flags;
  return { r: recursive, update, checksum, metaserver, fileserver, ca };
}
