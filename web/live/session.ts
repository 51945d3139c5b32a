// The session of this browser: read from the console, changed by signing in and out.
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
    // Another window may have signed in or out, with the same cookie.
    refetchOnWindowFocus: "always",
  }).data;
}

/** True for a signed-in operator. */
export function useIsOperator(): boolean {
  return useSession()?.authenticated === true;
}

/** Signs in and reads all data again. Throws ApiProblem with the reason. */
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

/** Ends every operator's session, this one too, for an operator who left one open elsewhere. */
export async function signOutEverywhere(): Promise<void> {
  await call("/api/auth/logout-all", { method: "POST" });
  setEnded(undefined);
  await startAnew();
}

let onChange: (() => void) | undefined;

/** Calls back after a sign-in or sign-out: open sockets must be reopened for the new session. */
export function watchSession(listener: () => void): void {
  onChange = listener;
}

/** Reads the session; one that the console has forgotten counts as ended. */
export function checkSession(): Promise<void> {
  return queryClient.refetchQueries({ queryKey: SESSION_KEY });
}

/** Whom this window's sockets and data are for: an operator or a visitor. Undefined before the first answer. */
let isForOperator: boolean | undefined;
let isStartingAnew = false;

// An answer that differs from what this window has done itself is of another window, or of an end at the console.
queryClient.getQueryCache().subscribe((event) => {
  if (event.type !== "updated" || event.action.type !== "success") return;
  if (event.query.queryKey[0] !== SESSION_KEY[0]) return;
  const { authenticated } = event.query.state.data as SessionStatus;
  const isNews = isForOperator !== undefined && isForOperator !== authenticated && !isStartingAnew;
  isForOperator = authenticated;
  if (!isNews) return;
  setEnded(authenticated ? undefined : { kind: "ended" });
  void startAnew();
});

/** After a change of the session no earlier data may be shown. */
async function startAnew(): Promise<void> {
  isStartingAnew = true;
  try {
    await readAnew();
  } finally {
    isStartingAnew = false;
  }
}

async function readAnew(): Promise<void> {
  await queryClient.cancelQueries();
  queryClient.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== SESSION_KEY[0] });
  await queryClient.invalidateQueries({ queryKey: SESSION_KEY });
  onChange?.();
  await queryClient.refetchQueries({ type: "active" });
}

/** An end of the session from outside this page, or one that was asked for and did not come. */
export type SessionEnd =
  | { readonly kind: "expiring"; readonly expiresAt: number }
  | { readonly kind: "ended" }
  | { readonly kind: "stays"; readonly why: string };

let end: SessionEnd | undefined;
const listeners = new Set<() => void>();

function setEnded(next: SessionEnd | undefined): void {
  end = next;
  for (const listener of listeners) listener();
}

/** Notes that the session ends soon, in unix seconds. */
export function noteExpiry(expiresAt: number): void {
  setEnded({ kind: "expiring", expiresAt });
}

/** Notes that a sign-out has failed: who leaves the machine has to know. */
export function noteSignedIn(error: unknown): void {
  setEnded({ kind: "stays", why: error instanceof Error ? error.message : String(error) });
}

/** Notes that the console no longer knows the session, or that another window signed out. */
export function forgetSession(): void {
  if (queryClient.getQueryData<SessionStatus>(SESSION_KEY)?.authenticated !== true) return;
  setEnded({ kind: "ended" });
  void startAnew();
}

watchRefusals((refusal) => {
  if (refusal.problem?.code === "AUTH_REQUIRED") forgetSession();
});

/** The notice about the session's end; undefined without one. */
export function useSessionEnd(): SessionEnd | undefined {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => end,
  );
}
