// Opens the metadata store that a `-meta` URL names (D19).

import { dirname, resolve } from "node:path";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { formatHostPort } from "#base/node-id.ts";
import { isPostgresUrl, parsePostgresUrl } from "#os/postgres-url.ts";
import { makePrivateFolder } from "#os/private-folder.ts";
import type { OnUpgraded } from "#os/schema-copy.ts";
import type { Directory, DirectoryReader, NodeStore } from "./directory.ts";
import { openSqliteDirectory, openSqliteNodes, openSqliteReader } from "./sqlite-directory.ts";

/** Dependencies of an opened store. */
export interface OpenDirectoryDeps {
  readonly clock: Clock;
  /** The file of `-meta_file`, whose password may change. */
  readonly urlFile?: string | undefined;
  /** The cluster that this host served before; undefined for a new one. A store without an id adopts it. */
  readonly clusterId?: string | undefined;
  /** False to refuse a database without tables, or with those of an older Grove, unchanged. */
  readonly makesTables?: boolean;
  /** Called when the opening has brought the tables to a newer schema. */
  readonly onUpgraded?: OnUpgraded | undefined;
}

/** A node that takes no new roots, and the end of its pause. */
export interface PlacementPause {
  readonly fsId: string;
  readonly untilWallMs: number | undefined;
}

/**
 * Opens `sqlite:PATH`, making file and folder when missing, or `postgres://…`, making the tables. Throws
 * BAD_ARGUMENT for any other URL and for a store of a newer Grove, CLUSTER_MISMATCH for another cluster's,
 * STORE_UNAVAILABLE when the store cannot be used. The URL is never quoted: it may hold a password.
 */
export async function openDirectory(url: string, deps: OpenDirectoryDeps): Promise<Directory> {
  if (isPostgresUrl(url)) {
    // Most clusters need no database server, nor the code for one.
    const { openPostgresDirectory } = await import("./postgres-directory.ts");
    return openPostgresDirectory({ ...deps, url });
  }
  const absolute = pathOf(url);
  makePrivateFolder(dirname(absolute));
  const directory = await openSqliteDirectory({
    path: absolute,
    clock: deps.clock,
    onUpgraded: deps.onUpgraded,
  });
  try {
    if (deps.clusterId !== undefined) await directory.adoptClusterId(deps.clusterId);
  } catch (error) {
    await directory.close();
    throw error;
  }
  return directory;
}

/**
 * Opens a store for reading beside the MetaServer that writes it: nothing is made or changed. Throws
 * BAD_ARGUMENT and STORE_UNAVAILABLE as `openDirectory` does, the latter also for a file that does not exist
 * yet.
 */
export async function openDirectoryReader(
  url: string,
  deps: Pick<OpenDirectoryDeps, "clock" | "urlFile">,
): Promise<DirectoryReader> {
  if (isPostgresUrl(url)) return openDirectory(url, { ...deps, makesTables: false });
  return openSqliteReader({ path: pathOf(url), clock: deps.clock });
}

/** Opens a store to enrol, give up or remove nodes beside its users. Throws as `openDirectoryReader` does. */
export async function openNodeStore(
  url: string,
  deps: Pick<OpenDirectoryDeps, "clock" | "urlFile">,
): Promise<NodeStore> {
  if (isPostgresUrl(url)) return openDirectory(url, { ...deps, makesTables: false });
  return openSqliteNodes({ path: pathOf(url), clock: deps.clock });
}

/**
 * Pauses the placement of new roots on a node until a moment in unix milliseconds, or resumes it (undefined).
 * Opens the store for that alone, beside its users. Throws as `openDirectoryReader` does.
 */
export async function pausePlacement(
  url: string,
  { fsId, untilWallMs, ...deps }: Pick<OpenDirectoryDeps, "clock" | "urlFile"> & PlacementPause,
): Promise<void> {
  await withNodeStore(url, deps, (store) => store.setPlacementPause(fsId, untilWallMs));
}

/** Opens the store for a piece of work beside its users, and closes it. Throws as `openDirectoryReader` does. */
export async function withNodeStore<T>(
  url: string,
  deps: Pick<OpenDirectoryDeps, "clock" | "urlFile">,
  work: (store: NodeStore) => Promise<T>,
): Promise<T> {
  const store = await openNodeStore(url, deps);
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** The kind and place of a URL's store for display, never its user or password. Throws BAD_ARGUMENT. */
export function storePlace(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): { readonly kind: "sqlite" | "postgres"; readonly place: string } {
  if (!isPostgresUrl(url)) return { kind: "sqlite", place: pathOf(url) };
  const { hosts, database } = parsePostgresUrl(url, env);
  return { kind: "postgres", place: `${hosts.map((host) => formatHostPort(host)).join(",")}/${database}` };
}

/** The password in a store's URL, to be kept out of all output; undefined for none. Throws BAD_ARGUMENT. */
export function storePassword(
  url: string,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  return isPostgresUrl(url) ? parsePostgresUrl(url, env).password : undefined;
}

function pathOf(url: string): string {
  const path = /^sqlite:(.+)$/s.exec(url)?.[1];
  if (path !== undefined) return resolve(path);
  throw new GroveError("BAD_ARGUMENT", "the metadata store is given as sqlite:PATH or postgres://…");
}
