// The contract of the metadata store about security events of MetaServers, for every implementation.
import assert from "node:assert/strict";
import type { SecurityReport } from "./directory.ts";
import { METASERVERS_HEARD_MAX, SECURITY_REPORT_MAX_BYTES } from "./security-commands.ts";
import { type Contract, refused } from "./store-under-test.fixture.ts";

const report = (source: string, id: string): SecurityReport => ({
  source,
  document: JSON.stringify({ events: [{ id: "0" }, { id }] }),
});

/** Declares the tests. */
export function testSecurityReports(contract: Contract): void {
  contract(
    "each MetaServer's last report is kept, also after a restart, and is no setting (5.7)",
    async (store) => {
      assert.deepEqual(await store.directory.securityReports(), []);
      await store.directory.putSecurityReport(report("m2:50050", "1"));
      await store.directory.putSecurityReport(report("m1:50050", "2"));
      await store.directory.putSecurityReport(report("m2:50050", "3"));
      const kept = [report("m1:50050", "2"), report("m2:50050", "3")];
      assert.deepEqual(await store.directory.securityReports(), kept);
      assert.equal(await store.directory.clusterId(), undefined);
      assert.deepEqual(await (await store.reopen()).securityReports(), kept);
    },
  );

  contract(
    "of more MetaServers than are kept, the one that was silent for longest goes (5.7)",
    async ({ directory }) => {
      for (let at = 0; at < METASERVERS_HEARD_MAX; at++)
        await directory.putSecurityReport(report(`m${at}:1`, at === 7 ? "A" : `B${at}`));
      await directory.putSecurityReport(report("new:1", "C"));
      const sources = (await directory.securityReports()).map(({ source }) => source);
      assert.equal(sources.length, METASERVERS_HEARD_MAX);
      assert.deepEqual([sources.includes("m7:1"), sources.includes("new:1")], [false, true]);
    },
  );

  contract("what is no report is refused, and nothing of it kept", async ({ directory }) => {
    const long = "x".repeat(SECURITY_REPORT_MAX_BYTES + 1);
    for (const wrong of [
      report("", "1"),
      report("a b", "1"),
      report("ü", "1"),
      report("x".repeat(301), "1"),
      { source: "m", document: long },
    ])
      await refused("BAD_ARGUMENT", directory.putSecurityReport(wrong));
    assert.deepEqual(await directory.securityReports(), []);
    await directory.putSecurityReport({ source: "m", document: long.slice(1) });
    assert.equal((await directory.securityReports()).length, 1);
  });
}
