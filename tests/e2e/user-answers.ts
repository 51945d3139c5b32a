// A console's answers to an operator about single users: access, and the trash.
import type { z } from "zod";
import type { userStateKnown } from "#wire/webapi/user-state.ts";
import type { FakeConsole } from "./fake-console.ts";
import { BOB, LOCKED } from "./full-cluster.ts";

type Known = z.infer<typeof userStateKnown>;

const GIB = 2 ** 30;

/** Fills a fake console with the answers of a user's panel. */
export function answerForUsers(fake: FakeConsole, now: number): void {
  const say = (path: string, reply: object): void => void fake.replies.set(path, reply);
  say("GET /api/new-addresses", {
    waiting: [
      {
        from: "alice@people.example",
        to: "alice.married-name@people.example",
        issuer: "idp.example.net",
        subject: "8f3a-11d0-9c55",
        first_seen_at: now - 86_400,
        last_seen_at: now - 240,
      },
      {
        from: "a.very.long.name.of.somebody@department.university.example",
        to: "a.very.long.name.of.somebody.else@another.department.university.example",
        issuer: "idp.example.net/with/a/long/path/of/a/tenant/0f9e8d7c6b5a",
        subject: "00u1a2b3c4d5e6f7g8h9",
        first_seen_at: now - 900,
        last_seen_at: now - 60,
      },
    ],
    changing: [{ from: "carl@people.example", to: "carla@people.example", waits_for: ["n2", "n4"] }],
  });
  const trash = `/api/users/${encodeURIComponent(BOB)}/trash`;
  say(`POST ${trash}`, {
    username: BOB,
    node_id: "n2",
    items: [
      {
        trash_id: "0m2x7k1qa-1f",
        path: "/scans/2026/a-folder-with-a-long-name/a-very-long-name-of-a-file-that-goes-on-and-on.tar.gz",
        kind: "file",
        size: 4 * GIB,
        trashed_at: now - 7_200,
        expires_at: now + 29 * 86_400,
        trashed_by: "a.very.long.name.of.somebody@department.university.example",
      },
      {
        trash_id: "0m2x7k1qa-1e",
        path: "/drafts",
        kind: "directory",
        size: 120_000,
        trashed_at: now - 90_000,
        expires_at: now + 28 * 86_400,
        trashed_by: BOB,
      },
    ],
    next_page_token: "2",
  });
  say(`POST ${trash}/restore`, { username: BOB, node_id: "n2", path: "/drafts (2)" });
  const handOver = {
    to: BOB,
    may_delete: true,
    reason: "takes the files home before the end of the month",
    set_by: "operator 5f3c9a10",
    set_at: now - 90_000,
    until: now + 20 * 86_400,
  };
  say(`GET /api/users/${encodeURIComponent(BOB)}/state`, {
    username: BOB,
    state: null,
    hand_overs: [],
    inherits: [{ ...handOver, root: LOCKED }],
  } satisfies Known);
  say(`GET /api/users/${encodeURIComponent(LOCKED)}/state`, {
    username: LOCKED,
    hand_overs: [handOver],
    inherits: [],
    state: {
      disabled: true,
      closes_shares: false,
      reason: "has left; asked by the head of the department on Monday",
      set_by: "operator 5f3c9a10",
      set_at: now - 90_000,
      removed_until: now + 28 * 86_400,
    },
  } satisfies Known);
  say(`PUT /api/users/${encodeURIComponent(BOB)}/state`, {
    username: BOB,
    disabled: true,
    holds_everywhere: false,
    nodes: ["fs-x86-1", "fs-x86-2", "fs-a-node-with-a-rather-long-name-in-the-cellar"].map((name, index) => ({
      id: `n${index}`,
      name,
      holds: index !== 1,
      sessions_ended: index === 0 ? 2 : 0,
      problem: index === 1 ? "it did not answer within 4 s" : null,
    })),
  });
}
