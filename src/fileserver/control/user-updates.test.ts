// Whether a node knows what was decided about users, as far as the MetaServer did at the last contact.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { silentLogger } from "#base/log.ts";
import { ExchangeUserStatesResponseSchema } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { UserUpdates } from "./user-updates.ts";

test("a node knows nothing of users for sure until it has exchanged with the MetaServer, or is told that both know the same", async () => {
  let fails = true;
  const words = new UserUpdates({
    client: {
      exchangeUserStates: () =>
        fails ? Promise.reject(new Error("away")) : Promise.resolve(create(ExchangeUserStatesResponseSchema)),
      listReboundUsers: () => Promise.reject(new Error("is not asked")),
    } as unknown as ConstructorParameters<typeof UserUpdates>[0]["client"],
    fsId: "n1",
    onRebound: undefined,
    userStates: { digest: "", list: () => [], learn: () => Promise.resolve() },
    timeoutMs: 1_000,
    log: silentLogger,
  });
  const hear = (userStatesDiffer: boolean) =>
    words.hearNews(1n, { subjectsVersion: 0n, userStatesDiffer, groupsMark: "" });
  await words.hearAll(1n);
  assert.equal(words.hasUserStates, false);
  await hear(false);
  assert.equal(words.hasUserStates, true);
  await hear(true);
  assert.equal(words.hasUserStates, false);
  fails = false;
  await hear(true);
  assert.equal(words.hasUserStates, true);
});

test("groups are read between a new address and the word that it is in use", async () => {
  const steps: string[] = [];
  const word = { username: "new", formerUsername: "old", issuer: "i", subject: "s", version: 7n };
  const words = new UserUpdates({
    client: {
      listReboundSubjects: ({ afterVersion }: { readonly afterVersion: bigint }) => {
        steps.push(`asked after ${afterVersion}`);
        return Promise.resolve({ subjects: afterVersion < 7n ? [word] : [] });
      },
    } as unknown as ConstructorParameters<typeof UserUpdates>[0]["client"],
    fsId: "n1",
    onRebound: () => Promise.resolve(void steps.push("renamed")),
    userStates: undefined,
    groups: {
      hear: () => Promise.resolve(void steps.push("mark")),
      read: () => Promise.resolve(void steps.push("groups")),
    },
    timeoutMs: 1_000,
    log: silentLogger,
  });
  await words.hearNews(1n, { subjectsVersion: 7n, userStatesDiffer: false, groupsMark: "m" });
  assert.deepEqual(steps, ["asked after 0", "renamed", "groups", "asked after 7", "mark"]);
});
