// A user whose quota is full.
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Job } from "./job.ts";
import { makeFile } from "./tree.ts";

const MB = 1_000_000;

/** The user gets the numbers and the action, the operator a warning, and both see when there is room. */
export const aFullQuota: Job = {
  title:
    "a full quota is refused with its numbers, is an alert before it is full, and is over once there is room",
  async run(site) {
    const alice = site.person("alice");
    const path = `/api/users/${encodeURIComponent(alice.email)}/quota`;
    const most = await makeFile(join(site.folder, "files", "most"), 3.9 * MB);
    const more = await makeFile(join(site.folder, "files", "more"), MB);
    await site.ask(path, "PUT", { quota_bytes: 4 * MB });
    await alice.ok("put", most, "/most");
    const refused = await alice.refused(5, "put", more, "/more");
    assert.match(refused, /storage quota exceeded/);
    assert.match(refused, /3\.[89] ?M/);
    const alert = await site.alert(`quota_exceeded:${alice.email}`);
    assert.equal(alert.severity, "warning");
    assert.match(alert.title, /^alice@example\.com used 97\.5 % of the quota$/);
    assert.match(await alice.ok("quota"), /97|3\.[789]/);
    await alice.ok("rm", "/most");
    const trashed = await alice.refused(5, "put", most, "/most");
    assert.match(trashed, /trash/, "what lies in the trash counts, and the refusal says so");
    await alice.ok("trash", "empty", "--yes");
    await alice.ok("put", more, "/more");
    await site.noAlert(`quota_exceeded:${alice.email}`);
    await site.ask(path, "PUT", { quota_bytes: 0 });
  },
};
