// Uninstalling: the guide's list of what to remove is complete.
import assert from "node:assert/strict";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Job } from "./job.ts";

/** Users sign out, every process ends, and only what the guide names is left. */
export const uninstall: Job = {
  title:
    "at the end every process stops with 0, and after the folders that the guide names nothing of Grove is left",
  async run(site) {
    for (const name of ["alice", "bob", "dave"]) await site.person(name).ok("logout");
    const refused = await site.person("alice").refused(2, "ls");
    assert.match(refused, /grove login/);
    const servers = [site.console, ...site.nodes.values(), site.metaserver];
    for (const server of servers) assert.equal(await server.stop(), 0, server.program.output().slice(-2_000));
    // Processes store only in their data folder, the authority's, or the user's own two folders.
    const kept = await readdir(site.home);
    assert.ok(kept.includes(".config"), kept.join(" "));
    // Compiled code is elsewhere where NODE_COMPILE_CACHE says so.
    if (kept.includes(".cache")) assert.deepEqual(await readdir(join(site.home, ".cache")), ["grove"]);
    for (const folder of [join(".cache", "grove"), ".cache", ".config"])
      await rm(join(site.home, folder), { recursive: true, force: true });
    assert.deepEqual(await readdir(site.home), []);
    for (const server of servers) {
      await assert.rejects(fetch(`http://${server.place.address}/`), "nobody listens any more");
    }
  },
};
