// The contract of the metadata store about decisions on users, for every implementation.
import assert from "node:assert/strict";
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
    "what is no decision is refused, and nothing is kept of what came with it",
    async ({ directory }) => {
      await refused("BAD_ARGUMENT", directory.putUserStates([state("a@x.de", 1), state("b@x.de", 0)]));
      assert.deepEqual(await directory.userStates(), []);
    },
  );
}
