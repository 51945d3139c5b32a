// Reads users and changes their quotas.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { z } from "zod";
import type { quotaChanged, UserRow, userList } from "#wire/webapi/user.ts";
import { call } from "./api.ts";
import { queryClient } from "./query-client.ts";

type UserPage = z.infer<typeof userList>;
/** The answer to a changed quota. */
export type QuotaChanged = z.infer<typeof quotaChanged>;

const PAGE = 200;
const POLL_MS = 15_000;

/** A list of users that grows page by page. */
export interface UserPages {
  readonly users: readonly UserRow[] | undefined;
  readonly total: number;
  readonly hasMore: boolean;
  readonly isReadingMore: boolean;
  readonly more: () => void;
  readonly error: Error | null;
  /** The question that these users answer; that of the list before while another is read. */
  readonly asked: string;
}

/** GET /api/users, page by page, sorted by the console. */
export function useUsers(options: {
  readonly q: string;
  readonly sort: "usage" | "name";
  /** Id of the node whose users are listed; empty for all. */
  readonly node: string;
  /** True lists only users who are locked out. */
  readonly isLockedAlone?: boolean;
}): UserPages {
  const { q, sort, node, isLockedAlone = false } = options;
  const asked = JSON.stringify([q, sort, node, isLockedAlone]);
  const query = useInfiniteQuery({
    queryKey: ["users", q, sort, node, isLockedAlone],
    queryFn: async ({ pageParam, signal }) => {
      const search = new URLSearchParams({ sort, limit: String(PAGE) });
      if (q !== "") search.set("q", q);
      if (node !== "") search.set("node", node);
      if (isLockedAlone) search.set("locked", "true");
      if (pageParam !== "") search.set("cursor", pageParam);
      return { ...(await call<UserPage>(`/api/users?${search}`, { signal })), asked };
    },
    initialPageParam: "",
    getNextPageParam: (last) => last.next_cursor ?? undefined,
    // A refresh reads every loaded page again, so long lists refresh less often.
    refetchInterval: ({ state }) => POLL_MS * Math.max(1, state.data?.pages.length ?? 1),
    // The list stays until the next one is read, unless it is of another node.
    placeholderData: (before, query) => (query?.queryKey[3] === node ? before : undefined),
  });
  return {
    users: query.data?.pages.flatMap((page) => page.users),
    total: query.data?.pages[0]?.total_users ?? 0,
    hasMore: query.hasNextPage,
    isReadingMore: query.isFetchingNextPage,
    more: () => {
      if (query.hasNextPage && !query.isFetching) void query.fetchNextPage();
    },
    error: query.error,
    asked: query.data?.pages[0]?.asked ?? "",
  };
}

/** The number of users; undefined until it is read, and for visitors. */
export function useUserCount({ mayAsk }: { readonly mayAsk: boolean }): number | undefined {
  return useQuery({
    queryKey: ["users", "count"],
    queryFn: ({ signal }) => call<UserPage>("/api/users?limit=1", { signal }),
    select: (page) => page.total_users,
    refetchInterval: POLL_MS,
    enabled: mayAsk,
  }).data;
}

/** One user by name; undefined while it is read, and for an unknown name. */
export function useUser(username: string): {
  readonly user: UserRow | undefined;
  readonly isRead: boolean;
  readonly error: Error | null;
} {
  const query = useQuery({
    queryKey: ["users", "one", username],
    queryFn: ({ signal }) => call<UserPage>(`/api/users?${new URLSearchParams({ username })}`, { signal }),
    refetchInterval: POLL_MS,
  });
  return {
    user: query.data?.users[0],
    isRead: query.data !== undefined,
    error: query.error,
  };
}

/**
 * Sets an inode limit, and the quota anew as the console knows it by now: another operator may have changed it since
 * this page read it. Throws ApiProblem, and an error for a user whose node has not reported.
 */
export async function setInodeLimit(username: string, inodeLimit: number): Promise<QuotaChanged> {
  const { users } = await call<UserPage>(`/api/users?${new URLSearchParams({ username })}`);
  const [now] = users;
  if (now === undefined || now.quota_source === "pending")
    throw new Error("Its home node has not reported yet; try again in a moment.");
  return setQuota(username, now.quota_source === "explicit" ? BigInt(now.quota_limit) : 0n, inodeLimit);
}

/**
 * Sets a quota, and an inode limit if given; 0 restores the default. Counts above 2^53 are decimal strings.
 * Throws ApiProblem.
 */
export async function setQuota(
  username: string,
  quotaBytes: bigint,
  inodeLimit?: number,
): Promise<QuotaChanged> {
  const count = quotaBytes <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(quotaBytes) : quotaBytes.toString();
  const changed = await call<QuotaChanged>(`/api/users/${encodeURIComponent(username)}/quota`, {
    method: "PUT",
    body: { quota_bytes: count, ...(inodeLimit === undefined ? {} : { inode_limit: inodeLimit }) },
  });
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: ["users"] }),
    queryClient.invalidateQueries({ queryKey: ["audit"] }),
  ]);
  return changed;
}
