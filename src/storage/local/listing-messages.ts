// Messages between the main thread and the thread that sorts listings.
import type { InodeId } from "#storage/contract/inode.ts";
import type { ListQuery } from "#storage/contract/storage.ts";
import type { PageRows } from "#storage/metadata/list-page.ts";
import type { RefusedReply } from "#storage/writer/write-commands.ts";

/** Column by which a listing is sorted. */
export type SortedColumn = "size" | "mtime";

/** A page of a directory, valid while the root's access version is this one. */
export interface SortedQuery extends ListQuery {
  readonly owner: string;
  readonly accessVersion: number;
  readonly directoryId: InodeId;
}

/** To the thread: a listing and its number, its cancellation, or the request to end. */
export type ListingRequest =
  | { readonly number: number; readonly query: SortedQuery }
  | { readonly drop: number }
  | "stop";

/** From the thread, once for each listing, cancelled ones included. */
export type ListingAnswer =
  | { readonly number: number; readonly page: PageRows }
  | ({ readonly number: number } & RefusedReply)
  | { readonly number: number; readonly problem: string; readonly isBroken: boolean };

/** Start data of the thread. */
export interface ListingWorkerData {
  readonly databasePath: string;
}
