// What the main thread and the thread that sorts listings tell each other.
import type { InodeId } from "#storage/contract/inode.ts";
import type { ListQuery } from "#storage/contract/storage.ts";
import type { PageRows } from "#storage/metadata/list-page.ts";
import type { RefusedReply } from "#storage/writer/write-commands.ts";

/** What a listing is sorted by. */
export type SortedColumn = "size" | "mtime";

/** A page of a directory, asked for by somebody who may reach it as long as the root's access version is this one. */
export interface SortedQuery extends ListQuery {
  readonly owner: string;
  readonly accessVersion: number;
  readonly directoryId: InodeId;
}

/** To the thread: a listing and its number, that nobody wants one any more, or the request to end. */
export type ListingRequest =
  | { readonly number: number; readonly query: SortedQuery }
  | { readonly drop: number }
  | "stop";

/** From the thread, once for each listing, also for one that was dropped. */
export type ListingAnswer =
  | { readonly number: number; readonly page: PageRows }
  | ({ readonly number: number } & RefusedReply)
  | { readonly number: number; readonly problem: string; readonly isBroken: boolean };

/** What the thread is started with. */
export interface ListingWorkerData {
  readonly databasePath: string;
}
