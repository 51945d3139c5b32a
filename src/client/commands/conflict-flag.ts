// The flag --on-conflict: fails, replaces or keeps both when a name is taken.
import { Option } from "commander";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";

/** Values of the flag, and their values on the wire. */
export const CONFLICTS: Readonly<Record<"fail" | "replace" | "keep-both", OnConflict>> = {
  fail: OnConflict.FAIL,
  replace: OnConflict.REPLACE,
  "keep-both": OnConflict.RENAME,
};

/** The flags of a verb that creates a name. */
export interface ConflictFlags {
  readonly onConflict: keyof typeof CONFLICTS;
}

/** The flag for a verb's parser; `name` is the help's word for the name that may be taken. */
export function conflictOption(name: string): Option {
  return new Option("--on-conflict <way>", `what to do when ${name} is taken`)
    .choices(Object.keys(CONFLICTS))
    .default("fail");
}
