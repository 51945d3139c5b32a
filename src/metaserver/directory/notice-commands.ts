// The commands of the metadata store about people who want no notices, as plans of one transaction each.
import { type Plan, run } from "#metaserver/sql/sql-plan.ts";
import { setting } from "./node-commands.ts";

/** A setting for each of them, since a new table would shut out the MetaServers of the version before. */
const NO_NOTICES = "no_notices:";

/** True for a user who wants no notices. */
export function* noticesOff(username: string): Plan<boolean> {
  return (yield* setting(NO_NOTICES + username)) !== undefined;
}

/** Turns a user's notices off, or on again. */
export function* setNoticesOff(username: string, isOff: boolean): Plan<void> {
  if (isOff) {
    yield* run(
      "INSERT INTO settings (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
      NO_NOTICES + username,
      "off",
    );
  } else yield* run("DELETE FROM settings WHERE key = ?", NO_NOTICES + username);
}
