// What a FileServer remembers of the ends of credentials that MetaServers tell.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { endsOfUser } from "#base/door-call.ts";
import { silentLogger } from "#base/log.ts";
import { MetaServerNews } from "./metaserver-news.ts";

type Ended = readonly { readonly credential: string; readonly atMs: number }[];

function newsOf(answers: { ended: Ended }): { news: MetaServerNews; clock: ManualClock } {
  const clock = new ManualClock();
  let mark = 0;
  const client = {
    getTicketNews: async () => ({
      $typeName: "grove.v1.GetTicketNewsResponse" as const,
      keys: [],
      mark: String(++mark),
      unchanged: false,
      ended: answers.ended.map(({ credential, atMs }) => ({
        $typeName: "grove.v1.EndedCredential" as const,
        credential,
        atMs: BigInt(atMs),
      })),
      allBeforeMs: 0n,
      clusterId: "c",
    }),
  };
  const news = new MetaServerNews({ clients: [client], fsId: "n1", clock, log: silentLogger });
  return { news, clock };
}

test("a line about a user ends what that user's older tickets opened, and nothing of others", async () => {
  const answers: { ended: Ended } = {
    ended: [
      { credential: "app:gone", atMs: 50 },
      { credential: endsOfUser("alice"), atMs: 100 },
    ],
  };
  const { news, clock } = newsOf(answers);
  await news.fresh();
  const isEnded = (credential: string, username: string, ticketIssuedMs: number): boolean =>
    news.isEnded({ credential, username, ticketIssuedMs });
  const seen = (): boolean[] => [
    isEnded("app:gone", "bob", 900),
    isEnded("app:a", "alice", 99),
    isEnded("app:a", "alice", 100),
    isEnded("app:b", "bob", 99),
  ];
  assert.deepEqual(seen(), [true, true, false, false]);
  // An older answer of another MetaServer takes none back.
  answers.ended = [{ credential: endsOfUser("alice"), atMs: 70 }];
  clock.advance(10_000);
  await news.fresh();
  assert.deepEqual(seen(), [true, true, false, false]);
});

test("a FileServer forgets first what MetaServers have stopped telling longest ago", async () => {
  const many = (from: number): Ended =>
    Array.from({ length: 10_000 }, (_, at) => ({ credential: `app:${from + at}`, atMs: from + at }));
  const answers = { ended: many(0) };
  const { news, clock } = newsOf(answers);
  const isEnded = (at: number): boolean =>
    news.isEnded({ credential: `app:${at}`, username: "alice", ticketIssuedMs: 1 });
  for (const from of [0, 10_000, 9_000, 20_000]) {
    answers.ended = many(from);
    clock.advance(10_000);
    await news.fresh();
  }
  // Those from 9,000 on were told again before the last ones came.
  assert.deepEqual([0, 8_999, 19_000, 19_999].map(isEnded), [false, false, false, false]);
  assert.deepEqual([9_000, 18_999, 20_000, 29_999].map(isEnded), [true, true, true, true]);
});
