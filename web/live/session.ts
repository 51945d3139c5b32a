// Who is signed in: read from the console, changed by signing in and out, ended when the console says so.
import { useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import type { z } from "zod";
import type { authStatus, loginReply } from "#wire/webapi/auth.ts";
import { call, watchRefusals } from "./api.ts";
import { queryClient } from "./query-client.ts";

/** GET /api/auth/status. */
export type SessionStatus = z.infer<typeof authStatus>;

const SESSION_KEY = ["session"] as const;

/** The session; undefined until the console has answered. */
export function useSession(): SessionStatus | undefined {
  return useQuery({
    queryKey: SESSION_KEY,
    queryFn: ({ signal }) => call<SessionStatus>("/api/auth/status", { signal }),
    staleTime: 60_000,
  }).data;
}

/** True once an operator is signed in. */
export function useIsOperator(): boolean {
  return useSession()?.authenticated === true;
}

/** Signs in. Throws ApiProblem with what is wrong. Everything that a visitor was shown is read again. */
export async function signIn(password: string): Promise<void> {
  await call<z.infer<typeof loginReply>>("/api/auth/login", { method: "POST", body: { password } });
  setEnded(undefined);
  await startAnew();
}

/** Signs out, here and on the console. */
export async function signOut(): Promise<void> {
  await call("/api/auth/logout", { method: "POST" });
  setEnded(undefined);
  await startAnew();
}

/** Ends every operator's session, this one among them: for whoever has left a browser somewhere. */
export async function signOutEverywhere(): Promise<void> {
  await call("/api/auth/logout-all", { method: "POST" });
  setEnded(undefined);
  await startAnew();
}

let onChange: (() => void) | undefined;

/** Calls back when somebody has signed in or out: what is open in the old name must be opened anew. */
export function watchSession(listener: () => void): void {
  onChange = listener;
}

/** Asks who is signed in; when the console has forgotten the session, it is told as an end. */
export async function checkSession(): Promise<void> {
  const before = queryClient.getQueryData<SessionStatus>(SESSION_KEY);
  await queryClient.refetchQueries({ queryKey: SESSION_KEY });
  const now = queryClient.getQueryData<SessionStatus>(SESSION_KEY);
  if (before?.authenticated !== true || now?.authenticated !== false) return;
  setEnded({ kind: "ended" });
  await startAnew();
}

/** After a change of who asks nothing that was read before may be shown. */
async function startAnew(): Promise<void> {
  await queryClient.cancelQueries();
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
  await queryClient.invalidateQueries({ queryKey: SESSION_KEY });
  onChange?.();
  await queryClient.refetchQueries({ type: "active" });
}

/** What became of the session without this page's doing. */
export type SessionEnd =
  | { readonly kind: "expiring"; readonly expiresAt: number }
  | { readonly kind: "ended" };

let end: SessionEnd | undefined;
const listeners = new Set<() => void>();

function setEnded(next: SessionEnd | undefined): void {
  end = next;
  for (const listener of listeners) listener();
}

/** The session ends soon: unix seconds. */
export function noteExpiry(expiresAt: number): void {
  setEnded({ kind: "expiring", expiresAt });
}

/** The console no longer knows the session: here, or signed out in another window. */
export function forgetSession(): void {
  if (queryClient.getQueryData<SessionStatus>(SESSION_KEY)?.authenticated !== true) return;
  setEnded({ kind: "ended" });
  void startAnew();
}

watchRefusals((refusal) => {
  if (refusal.problem?.code === "AUTH_REQUIRED") forgetSession();
});

/** What is to be told of the session's end; undefined while there is nothing. */
export function useSessionEnd(): SessionEnd | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => end,
  );
}
