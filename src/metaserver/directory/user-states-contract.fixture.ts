// The contract of the metadata store about decisions on users, for every implementation.
import assert from "node:assert/strict";
import type { Removal } from "#base/removal.ts";
import type { UserState } from "#base/user-state.ts";
import { type Contract, refused } from "./store-under-test.fixture.ts";

const state = (username: string, version: number, more: Partial<UserState> = {}): UserState => ({
  username,
  disabled: true,
  closesShares: false,
  version,
  reason: "has left",
  setBy: "root@x.de",
  setAtMs: 1_790_000_000_000,
  tokensFromMs: 0,
  issuer: "",
  subject: "",
  ...more,
});

/** Declares the tests. */
export function testUserStates(contract: Contract): void {
  contract(
    "of two decisions about a user the one with the higher version counts, over restarts too",
    async (store) => {
      const { directory } = store;
      assert.deepEqual(await directory.userStates(), []);
      await directory.putUserStates([state("b@x.de", 5), state("a@x.de", 7)]);
      const [older] = await directory.putUserStates([state("b@x.de", 4, { disabled: false })]);
      assert.deepEqual([older?.version, older?.disabled], [5, true]);
      await directory.putUserStates([state("b@x.de", 6, { disabled: false })]);
      const again = await store.reopen();
      assert.deepEqual(
        (await again.userStates()).map(({ username, version, disabled }) => [username, version, disabled]),
        [
          ["a@x.de", 7, true],
          ["b@x.de", 6, false],
        ],
      );
    },
  );

  contract("what was handed over and who was removed come back as they were", async (store) => {
    const handOver = { to: "c@x.de", mayDelete: true, reason: "takes over", setBy: "root@x.de" };
    const removal = { dueAtMs: 1_792_600_000_000, isReleased: false };
    const times = { setAtMs: 1_790_000_000_000, untilMs: 1_791_000_000_000 };
    const kept = state("a@x.de", 7, { handOvers: [{ ...handOver, ...times }], removal });
    await store.directory.putUserStates([kept]);
    const again = await store.reopen();
    assert.deepEqual(await again.userStates(), [kept]);
    const toOneself = [{ ...handOver, ...times, to: "a@x.de" }];
    await refused("BAD_ARGUMENT", again.putUserStates([state("a@x.de", 8, { handOvers: toOneself })]));
  });

  contract(
    "who comes with a released address has notices, whatever the user before wanted",
    async ({ directory }) => {
      const wanted = async (version: number, removal: Removal): Promise<boolean> => {
        await directory.putUserStates([state("a@x.de", version, { disabled: !removal.isReleased, removal })]);
        return !(await directory.noticesOff("a@x.de"));
      };
      await directory.setNoticesOff("a@x.de", true);
      const [first, second] = [{ dueAtMs: 1_792_600_000_000 }, { dueAtMs: 1_795_600_000_000 }];
      assert.equal(await wanted(1, { ...first, isReleased: false }), false);
      assert.equal(await wanted(2, { ...first, isReleased: true }), true);
      // What the newcomer says stays, over a removal that is undone too.
      await directory.setNoticesOff("a@x.de", true);
      assert.equal(await wanted(3, { ...second, isReleased: false, earlierDueAtMs: first.dueAtMs }), false);
      assert.equal(await wanted(4, { ...first, isReleased: true }), false);
      assert.equal(await wanted(5, { ...first, isReleased: true }), false);
    },
  );

  contract(
    "hundreds of decisions at once are each kept as if they had come alone, twice told ones too",
    async ({ directory }) => {
      await directory.admitSubject("u7@x.de", { issuer: "idp.example.com", subject: "7" });
      await directory.putUserStates([state("u3@x.de", 9)]);
      const many = Array.from({ length: 450 }, (_, at) => state(`u${at}@x.de`, 5));
      const again = [...many, state("u4@x.de", 6, { disabled: false })];
      const counting = await directory.putUserStates(again);
      assert.deepEqual(
        [counting[3]?.version, counting[4]?.version, counting[7]?.subject, counting[450]?.version],
        [9, 5, "7", 6],
      );
      const kept = new Map((await directory.userStates()).map((one) => [one.username, one]));
      assert.equal(kept.size, 450);
      assert.deepEqual([kept.get("u3@x.de")?.version, kept.get("u4@x.de")?.version], [9, 6]);
      const mark = await directory.userStatesMark();
      await directory.putUserStates(many);
      assert.equal(await directory.userStatesMark(), mark, "nothing new");
    },
  );

  contract(
    "what is no decision is refused, and nothing is kept of what came with it",
    async ({ directory }) => {
      await refused("BAD_ARGUMENT", directory.putUserStates([state("a@x.de", 1), state("b@x.de", 0)]));
      assert.deepEqual(await directory.userStates(), []);
    },
  );
}
