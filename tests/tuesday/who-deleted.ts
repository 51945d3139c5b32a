// The search for the user who deleted a file.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Job } from "./job.ts";

/**
 * The trash names the user; an administrator sees names for a reason only, which the owner is shown, and
 * restores the file.
 */
export const whoDeletedThis: Job = {
  title:
    "the trash says who deleted a file; an administrator brings it back for a reason that its owner reads",
  async run(site) {
    const [bob, alice] = [site.person("bob"), site.person("alice")];
    const file = join(site.folder, "minutes");
    await writeFile(file, "what was decided\n");
    await bob.ok("put", file, "/minutes");
    await bob.ok("rm", "/minutes");
    assert.match(await bob.ok("trash", "ls"), /by you +\/minutes$/m);
    const node = ["--fileserver", site.node("n2").place.address, "--admin-password"];
    const look = ["trash", "ls", "--of", bob.email, ...node];
    const unnamed = await alice.asAdministrator(...look);
    assert.doesNotMatch(unnamed.stdout, /minutes/);
    assert.match(unnamed.stderr, /Names are told with --reason, which bob@example\.com is shown\./);
    const named = await alice.asAdministrator(...look, "--reason", "ticket 4711");
    assert.match(named.stdout, /by bob@example\.com +\/minutes$/m);
    const restore = ["trash", "restore", "/minutes", "--of", bob.email, "--reason", "ticket 4711"];
    await alice.asAdministrator(...restore, ...node);
    assert.equal(await bob.ok("cat", "/minutes"), "what was decided\n");
    const told = await bob.run("trash", "ls");
    assert.match(told.stdout + told.stderr, /an administrator, .*ticket 4711/);
  },
};
