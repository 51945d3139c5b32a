// The MetaServer is down, and comes back.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Job } from "./job.ts";
import type { Site } from "./site.ts";

const keyOf = (site: Site): string => `metaserver_offline:${site.metaserver.place.address}`;

/** The console polls every five seconds, on a machine that may be busy. */
const NOTICED_WITHIN_MS = 60_000;

interface Settings {
  readonly metaservers: readonly { readonly address: string; readonly state: string }[];
}

/** A kill: settings show at once that it is late; users with a root continue. */
export const theMetaServerDies: Job = {
  title:
    "a MetaServer that dies is late in the settings before it is an alert, and who has a root works on without it",
  async run(site) {
    await site.metaserver.stop("SIGKILL");
    const note = join(site.folder, "note");
    await writeFile(note, "while the MetaServer was away\n");
    const alice = site.person("alice");
    await alice.ok("put", note, "/note");
    assert.equal(await alice.ok("cat", "/note"), "while the MetaServer was away\n");
    const untilMs = performance.now() + NOTICED_WITHIN_MS;
    for (;;) {
      const { metaservers } = await site.ask<Settings>("/api/settings");
      if (metaservers[0]?.state !== "answering") break;
      assert.ok(performance.now() < untilMs, "the settings still say that it answers");
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  },
};

/** After 30 s the alert says what works and what fails; a newcomer gets the same; then it resolves. */
export const theMetaServerIsBack: Job = {
  title:
    "the alert of a silent MetaServer says what works meanwhile, a newcomer is told to wait, and its return ends both",
  async run(site) {
    const alert = await site.alert(keyOf(site));
    assert.equal(alert.severity, "critical");
    assert.match(
      alert.message,
      /Files go on being read and written on nodes that clients know\. New users, .* wait until it is back\./,
    );
    const erin = site.person("erin");
    const refused = await erin.signIn(0);
    assert.equal(refused.code, 7, refused.stderr);
    assert.ok(refused.stderr.includes(`localhost:${site.metaserver.place.port}`), refused.stderr);
    await site.metaserver.start();
    await site.noAlert(keyOf(site));
    const signedIn = await erin.signIn();
    assert.equal(signedIn.code, 0, signedIn.stderr);
    assert.match(signedIn.stdout, /erin@example\.com/);
  },
};
