// A user leaves the organisation.
import assert from "node:assert/strict";
import type { z } from "zod";
import type { userStateChanged } from "#wire/webapi/user-state.ts";
import type { Job } from "./job.ts";

/** Locks a user out on every node, with each answer; the files stay, and one step undoes it. */
export const aUserLeaves: Job = {
  title: "a user who leaves is locked out on every node at once, reads so, and comes back in one step",
  async run(site) {
    const dave = site.person("dave");
    const path = `/api/users/${encodeURIComponent(dave.email)}/state`;
    await dave.ok("ls");
    const locked = await site.ask<z.infer<typeof userStateChanged>>(path, "PUT", {
      disabled: true,
      reason: "has left",
    });
    assert.deepEqual(
      locked.nodes.map(({ holds }) => holds),
      locked.nodes.map(() => true),
      JSON.stringify(locked.nodes),
    );
    const refused = await dave.run("ls");
    assert.notEqual(refused.code, 0);
    assert.match(refused.stderr, /account is locked/i);
    assert.doesNotMatch(refused.stderr, /has left/, "the reason is for administrators");
    const signIn = await dave.signIn(0);
    assert.notEqual(signIn.code, 0);
    assert.match(signIn.stderr, /account is locked/i);
    await site.ask(path, "PUT", { disabled: false, reason: "came back" });
    assert.equal((await dave.signIn()).code, 0);
    await dave.ok("ls");
  },
};
