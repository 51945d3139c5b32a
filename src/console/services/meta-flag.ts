// The flag of the metadata store in commands that operators see.
import { shellWord } from "#base/shell-word.ts";
import type { ConsoleOptions } from "./console-options.ts";

/** The flag with the store's place; never its user or password. */
export function metaFlag(store: ConsoleOptions["store"]): string {
  if (store === undefined) return "-meta STORE";
  return `-meta ${shellWord(store.kind === "sqlite" ? `sqlite:${store.place}` : `postgres://USER@${store.place}`)}`;
}
