// Reads and changes a user's access.
import { useQuery } from "@tanstack/react-query";
import type { z } from "zod";
import type { userStateChanged, userStateKnown } from "#wire/webapi/user-state.ts";
import { call } from "./api.ts";
import { queryClient } from "./query-client.ts";

/** The decisions about a user. */
export type UserStateKnown = z.infer<typeof userStateKnown>;
/** The answer to a decision. */
export type UserStateChanged = z.infer<typeof userStateChanged>;

const POLL_MS = 15_000;

/** The decisions about a user; undefined until they are read. */
export function useUserState(username: string): {
  readonly known: UserStateKnown | undefined;
  readonly error: Error | null;
} {
  const { data, error } = useQuery({
    queryKey: ["users", "state", username],
    queryFn: ({ signal }) => call<UserStateKnown>(pathOf(username, "state"), { signal }),
    refetchInterval: POLL_MS,
  });
  return { known: data, error };
}

/** Locks a user out, or lets one in again. Throws ApiProblem. */
export function setUserState(
  username: string,
  body: { readonly disabled: boolean; readonly reason: string },
): Promise<UserStateChanged> {
  return changed(call<UserStateChanged>(pathOf(username, "state"), { method: "PUT", body }));
}

/** Ends all sessions of a user. Throws ApiProblem. */
export function endUserSessions(username: string, reason: string): Promise<UserStateChanged> {
  return changed(
    call<UserStateChanged>(pathOf(username, "end-sessions"), { method: "POST", body: { reason } }),
  );
}

async function changed(asked: Promise<UserStateChanged>): Promise<UserStateChanged> {
  const answer = await asked;
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: ["users"] }),
    queryClient.invalidateQueries({ queryKey: ["audit"] }),
  ]);
  return answer;
}

function pathOf(username: string, what: string): string {
  return `/api/users/${encodeURIComponent(username)}/${what}`;
}
