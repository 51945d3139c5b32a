// The verbs that the shell offers and completion knows, each imported on first use.
import type { Command } from "commander";
import type { CommandHost } from "#client/connection/command-host.ts";

/** The export of a verb's module. */
export interface VerbModule {
  readonly command: (host?: CommandHost) => Command;
}

/** The kind of a verb's words, for completion. */
export type Words = "remote" | "local then remote" | "remote then local" | "local" | "none";

/** One verb of the client. */
export interface Verb {
  readonly words: Words;
  readonly load: () => Promise<VerbModule>;
}

/** The verbs that make sense one after another over one connection. */
export const VERBS: Readonly<Record<string, Verb>> = {
  ls: { words: "remote", load: () => import("./ls-command.ts") },
  cd: { words: "remote", load: () => import("./cd-command.ts") },
  pwd: { words: "none", load: () => import("./pwd-command.ts") },
  stat: { words: "remote", load: () => import("./stat-command.ts") },
  mkdir: { words: "remote", load: () => import("./mkdir-command.ts") },
  put: { words: "local then remote", load: () => import("./put-command.ts") },
  get: { words: "remote then local", load: () => import("./get-command.ts") },
  cat: { words: "remote", load: () => import("./cat-command.ts") },
  cp: { words: "remote", load: () => import("./cp-command.ts") },
  mv: { words: "remote", load: () => import("./mv-command.ts") },
  rm: { words: "remote", load: () => import("./rm-command.ts") },
  share: { words: "remote", load: () => import("./share-command.ts") },
  unshare: { words: "remote", load: () => import("./unshare-command.ts") },
  link: { words: "none", load: () => import("./link-command.ts") },
  unlock: { words: "remote", load: () => import("./unlock-command.ts") },
  why: { words: "remote", load: () => import("./why-command.ts") },
  trash: { words: "none", load: () => import("./trash-command.ts") },
  quota: { words: "none", load: () => import("./quota-command.ts") },
  roots: { words: "none", load: () => import("./roots-command.ts") },
  notices: { words: "none", load: () => import("./notices-command.ts") },
  sessions: { words: "none", load: () => import("./sessions-command.ts") },
  whoami: { words: "none", load: () => import("./whoami-command.ts") },
};
