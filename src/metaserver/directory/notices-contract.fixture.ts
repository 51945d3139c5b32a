// The contract of the metadata store about people who want no notices, for every implementation.
import assert from "node:assert/strict";
import type { Contract } from "./store-under-test.fixture.ts";

/** Declares the tests. */
export function testNotices(contract: Contract): void {
  contract(
    "a user's notices are off until they are turned on again, over restarts, and no other's",
    async (store) => {
      const { directory } = store;
      assert.equal(await directory.noticesOff("a@x.de"), false);
      await directory.setNoticesOff("a@x.de", true);
      await directory.setNoticesOff("a@x.de", true);
      assert.equal(await directory.noticesOff("a@x.de"), true);
      assert.equal(await directory.noticesOff("b@x.de"), false);
      const again = await store.reopen();
      assert.equal(await again.noticesOff("a@x.de"), true);
      await again.setNoticesOff("a@x.de", false);
      assert.equal(await again.noticesOff("a@x.de"), false);
    },
  );
}
