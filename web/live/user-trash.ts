// A user's trash as operators see it: asked for with a reason, and never kept.
import type { z } from "zod";
import type { userTrashPage, userTrashRestored } from "#wire/webapi/user-trash.ts";
import { call } from "./api.ts";
import { queryClient } from "./query-client.ts";

/** One page of a trash. */
export type UserTrashPage = z.infer<typeof userTrashPage>;

/** A page with names; the user is shown the reason. Throws ApiProblem. */
export function lookAtTrash(username: string, reason: string, pageToken: string): Promise<UserTrashPage> {
  return call<UserTrashPage>(pathOf(username), { method: "POST", body: { reason, page_token: pageToken } });
}

/** Brings an item back, beside what is in its place if there is anything; answers where it is. Throws ApiProblem. */
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
