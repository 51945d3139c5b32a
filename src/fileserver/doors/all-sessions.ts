// The sessions of sign-ins and of doors together, for what concerns a user by whatever way they came.
import type { SessionTable } from "#security/sessions/session-table.ts";

/** What concerns all sessions of users. */
export interface AllSessions
  extends Pick<
    SessionTable,
    "endAll" | "endLockedOut" | "forgetLocks" | "lastActiveMs" | "list" | "takeUsed"
  > {
  /** How many users have used a live session in the last windowMs, by whatever way (D12). */
  activeUsers(windowMs: number): number;
}

/** Joins the tables. */
export function allSessions(signIns: SessionTable, doors: SessionTable): AllSessions {
  const both = [signIns, doors];
  const sum = (count: (table: SessionTable) => number): number =>
    both.reduce((total, table) => total + count(table), 0);
  return {
    activeUsers: (windowMs) => signIns.activeUsers(windowMs).union(doors.activeUsers(windowMs)).size,
    endAll: (username) => sum((table) => table.endAll(username)),
    endLockedOut: (isLockedOut) => sum((table) => table.endLockedOut(isLockedOut)),
    forgetLocks(isLockedOut) {
      for (const table of both) table.forgetLocks(isLockedOut);
    },
    lastActiveMs(username) {
      const moments = both.map((table) => table.lastActiveMs(username)).filter((ms) => ms !== undefined);
      return moments.length === 0 ? undefined : Math.max(...moments);
    },
    list: (username) => both.flatMap((table) => table.list(username)),
    takeUsed: () => new Set(both.flatMap((table) => [...table.takeUsed()])),
  };
}
