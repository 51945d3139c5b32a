// Tests the draft of an action from an address.
import assert from "node:assert/strict";
import { test } from "node:test";
import { draftFrom } from "./action-draft.ts";

test("a draft begins as the address says, and no address makes one that is not offered", () => {
  const draft = (search: string): object => {
    const { action, nodes } = draftFrom(new URLSearchParams(search));
    return { action, nodes };
  };
  assert.deepEqual(draft("do=reboot&node=n1&node=n2&node=n1"), { action: "reboot", nodes: ["n1", "n2"] });
  assert.deepEqual(draft("do=constructor&node="), { action: "restart", nodes: [] });
});
