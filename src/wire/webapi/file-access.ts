// Messages between a door and its pages: links, app passwords, and the search for names.
import { z } from "zod";
import type { FileEntry } from "./files.ts";

/** A link, as its owner sees it. */
export interface LinkFacts {
  readonly id: string;
  /** Where its file or folder lies now. */
  readonly path: string;
  /** True where files are dropped, and nothing is read. */
  readonly drop: boolean;
  readonly has_password: boolean;
  readonly created_ms: number;
  /** 0 for none, as for the limits below. */
  readonly ends_ms: number;
  readonly max_downloads: number;
  readonly downloads: number;
  readonly max_bytes: number;
  readonly bytes: number;
  readonly max_files: number;
  readonly files: number;
}

/** A link that was made; its address is told this once. */
export interface MadeLink {
  readonly url: string;
  readonly link: LinkFacts;
}

/** An app password without its secret. */
export interface AppPasswordFacts {
  readonly id: string;
  readonly name: string;
  readonly read_only: boolean;
  /** Below which it holds; empty for everything. */
  readonly folder: string;
  readonly created_ms: number;
  /** 0 for none. */
  readonly ends_ms: number;
  /** 0 for never; exact to five minutes. */
  readonly last_used_ms: number;
}

/** An app password that was made; it is told this once. */
export interface MadeAppPassword {
  readonly password: string;
  readonly facts: AppPasswordFacts;
}

/** A browser in which the person is signed in. Times are in unix milliseconds. */
export interface SessionFacts {
  readonly id: string;
  /** Such as "Firefox 145 on Linux"; empty where nothing is known. */
  readonly browser: string;
  /** Network address from which it began; empty where none was kept. */
  readonly address: string;
  readonly began_ms: number;
  /** Exact to five minutes. */
  readonly last_used_ms: number;
  readonly ends_ms: number;
  /** True for the one that asks. */
  readonly current: boolean;
}

/** A name that was found. */
export interface FoundEntry extends FileEntry {
  readonly path: string;
}

/** What a search has found. */
export interface FoundNames {
  readonly found: readonly FoundEntry[];
  /** Files and folders whose names were compared. */
  readonly looked: number;
  /** False where the search has ended before it had seen all. */
  readonly isWhole: boolean;
}

const place = { root: z.string().max(320), path: z.string().min(1).max(4_096) };
const count = z.int().min(0);

/** Makes a link; 0 for no limit. */
export const linkRequest = z.strictObject({
  ...place,
  drop: z.boolean(),
  password: z.string().max(256),
  ends_ms: count,
  max_downloads: count,
  max_bytes: count,
  max_files: count,
});
/** Ends a link. */
export const linkRevocation = z.strictObject({ root: place.root, id: z.string().min(1).max(64) });
/** Makes an app password; an empty folder for everything. */
export const appPasswordRequest = z.strictObject({
  name: z.string().min(1).max(64),
  read_only: z.boolean(),
  folder: z.string().max(4_096),
  ends_ms: count,
});
/** Ends a session by its id, or all but the one that asks. */
export const sessionEnd = z.union([
  z.strictObject({ id: z.string().min(1).max(64) }),
  z.strictObject({ others: z.literal(true) }),
]);
/** Ends an app password. */
export const appPasswordRevocation = z.strictObject({ id: z.string().min(1).max(64) });
