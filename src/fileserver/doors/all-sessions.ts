// The sessions of sign-ins and of doors together, for what concerns a user by whatever way they came.
import type { SessionTable } from "#security/sessions/session-table.ts";

/** What concerns all sessions of users. */
export type AllSessions = Pick<
  SessionTable,
  "activeUsers" | "endAll" | "endLockedOut" | "forgetLocks" | "lastActiveMs" | "list" | "takeUsed"
>;

/** Joins the tables. A user with sessions in both counts twice among the active ones. */
export function allSessions(signIns: SessionTable, doors: SessionTable): AllSessions {
  const both = [signIns, doors];
  const sum = (count: (table: SessionTable) => number): number =>
    both.reduce((total, table) => total + count(table), 0);
  return {
    activeUsers: (windowMs) => sum((table) => table.activeUsers(windowMs)),
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
