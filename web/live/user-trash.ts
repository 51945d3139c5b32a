// A user's trash for operators: read for a reason, and never cached.
import type { z } from "zod";
import type { userTrashPage, userTrashRestored } from "#wire/webapi/user-trash.ts";
import { call } from "./api.ts";
import { queryClient } from "./query-client.ts";

/** One page of a trash. */
export type UserTrashPage = z.infer<typeof userTrashPage>;

/** One page of names; the user sees the reason. Throws ApiProblem. */
export function lookAtTrash(username: string, reason: string, pageToken: string): Promise<UserTrashPage> {
  return call<UserTrashPage>(pathOf(username), { method: "POST", body: { reason, page_token: pageToken } });
}

/** Restores an item, under a new name if its place is taken; returns its path. Throws ApiProblem. */
export async function restoreFromTrash(username: string, reason: string, trashId: string): Promise<string> {
  const body = { reason, trash_id: trashId, on_conflict: "rename" };
  const { path } = await call<z.infer<typeof userTrashRestored>>(`${pathOf(username)}/restore`, {
    method: "POST",
    body,
  });
  await queryClient.invalidateQueries({ queryKey: ["users"] });
  return path;
}

function pathOf(username: string): string {
  return `/api/users/${encodeURIComponent(username)}/trash`;
}
