// Conditions on rows of roots that move, for the statements of other files.
import { ROOT_STRIDE } from "#storage/contract/inode.ts";

/** Begins the owner of a root that has departed; no user has such a name. */
export const DEPARTED = "moved:";

/** Begins the owner of grants in a root that has not arrived. */
export const ARRIVING = "arriving:";

/** True in SQL for a row of `root` that has not departed. */
export const IS_HERE: string = `root.owner NOT GLOB '${DEPARTED}*'`;

/** True in SQL for a row of `purging` outside of moving roots, of which nothing is removed meanwhile. */
export const MAY_BE_PURGED: string = `NOT EXISTS (SELECT 1 FROM root_move WHERE state <> 'arrived'
  AND number = coalesce(inode_id, content_id) / ${ROOT_STRIDE})`;
