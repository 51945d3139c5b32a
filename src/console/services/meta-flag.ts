// How commands that are shown to operators name the metadata store.
import { shellWord } from "#base/shell-word.ts";
import type { ConsoleOptions } from "./console-options.ts";

/** The flag with the store's place; never its user or password. */
export function metaFlag(store: ConsoleOptions["store"]): string {
  if (store === undefined) return "-meta STORE";
  return `-meta ${shellWord(store.kind === "sqlite" ? `sqlite:${store.place}` : `postgres://USER@${store.place}`)}`;
}
