// Tests requests against real stores, through a proxy that spoils them on the way.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { keepsFirst, OBJECT_STORES, withoutStore } from "#testing/object-stores.ts";
import { content, type ProxiedStore, proxiedStore } from "./store.fixture.ts";
import { isStoreProblem } from "./store-error.ts";
import type { Fault } from "./store-proxy.fixture.ts";

const HURRIED = { connectMs: 2_000, silenceMs: 300, bytesPerSecond: 1e9 };

for (const kind of OBJECT_STORES) {
  describe(`requests to ${kind}`, { skip: withoutStore(kind) }, () => {
    const ends: (() => Promise<void>)[] = [];
    after(async () => {
      for (const end of ends.toReversed()) await end();
    });
    let made: Promise<ProxiedStore> | undefined;
    const ready = async (): Promise<ProxiedStore> => {
      made ??= proxiedStore(kind, (end) => ends.push(end));
      const store = await made;
      store.proxy.fault = () => "none";
      store.proxy.seen.length = 0;
      return store;
    };

    test("a new object is whole at once, by its length, its checksum and its ranges", async () => {
      const { requests, client } = await ready();
      const { bytes, body, crc } = content(4_000_000);
      assert.deepEqual(await requests.putNew("here/whole", body, crc), { isCertain: true });
      const { length, crc32 } = (await requests.headOf("here/whole")) ?? assert.fail();
      assert.deepEqual([length, crc32], [4_000_000, crc]);
      assert.ok((await requests.getRange("here/whole", 0, 4_000_000)).equals(bytes));
      assert.ok(
        (await requests.getRange("here/whole", 262_144, 1000)).equals(bytes.subarray(262_144, 263_144)),
      );
      for (const behind of [3_999_000, 4_000_000, 5_000_000]) {
        await assert.rejects(requests.getRange("here/whole", behind, 2_000), (error) =>
          isStoreProblem(error, "missing"),
        );
      }
      await assert.rejects(requests.getRange("here/none", 0, 1), (error) => isStoreProblem(error, "missing"));
      assert.equal(await requests.headOf("here/none"), undefined);
      await client.delete("here/whole");
      await client.delete("here/whole");
      assert.equal(await requests.headOf("here/whole"), undefined);
    });

    const isFirst = keepsFirst(kind) ? false : `${kind} takes no condition on a PUT`;
    test("an object is never written over, and the same bytes again are no error", {
      skip: isFirst,
    }, async () => {
      const { requests } = await ready();
      const first = content(70_000, 1);
      const other = content(70_000, 2);
      await requests.putNew("here/once", first.body, first.crc);
      await requests.putNew("here/once", first.body, first.crc);
      await assert.rejects(requests.putNew("here/once", other.body, other.crc), (error) =>
        isStoreProblem(error, "refused"),
      );
      assert.ok((await requests.getRange("here/once", 0, 70_000)).equals(first.bytes));
    });

    const faults: readonly [Fault, { isCertain: boolean }][] = [
      ["slow-down", { isCertain: false }],
      ["cut-request", { isCertain: false }],
      ["lost-answer", { isCertain: false }],
      ["duplicate", { isCertain: true }],
      ["flipped-request", { isCertain: true }],
    ];
    for (const [fault, expected] of faults) {
      test(`an upload survives: ${fault}`, async () => {
        const { requests, proxy } = await ready();
        let spoiled = 0;
        proxy.fault = ({ method }) => (method === "PUT" && spoiled++ === 0 ? fault : "none");
        const { bytes, body, crc } = content(300_000);
        assert.deepEqual(await requests.putNew(`here/${fault}`, body, crc), expected);
        proxy.fault = () => "none";
        assert.ok((await requests.getRange(`here/${fault}`, 0, 300_000)).equals(bytes));
      });
    }

    for (const fault of ["slow-down", "cut-answer", "lost-answer"] as const) {
      test(`a download survives: ${fault}`, async () => {
        const { requests, proxy } = await ready();
        const { bytes, body, crc } = content(300_000, 7);
        await requests.putNew(`here/down-${fault}`, body, crc);
        let spoiled = 0;
        proxy.fault = ({ method }) => (method === "GET" && spoiled++ === 0 ? fault : "none");
        assert.ok((await requests.getRange(`here/down-${fault}`, 0, 300_000)).equals(bytes));
        assert.equal(spoiled, 2);
      });
    }

    test("a silent store is left after its time, and asked again", async () => {
      const { another, proxy } = await ready();
      const requests = another(HURRIED);
      const { body, crc } = content(1_000);
      let spoiled = 0;
      proxy.fault = ({ method }) => (method === "PUT" && spoiled++ === 0 ? "silent" : "none");
      assert.deepEqual(await requests.putNew("here/silent", body, crc), { isCertain: false });
    });

    test("closing ends requests that are under way, and all later ones", async () => {
      const { another, proxy } = await ready();
      const requests = another();
      proxy.fault = () => "silent";
      const waiting = requests.headOf("here/never");
      const refused = assert.rejects(waiting, (error) => isStoreProblem(error, "closed"));
      while (proxy.seen.length === 0) await new Promise(setImmediate);
      requests.client.close();
      await refused;
      await assert.rejects(requests.headOf("here/never"), (error) => isStoreProblem(error, "closed"));
    });

    test("objects are removed in batches, and missing ones are confirmed", async () => {
      const { requests } = await ready();
      const { body, crc } = content(100);
      const keys = ["here/d/a", "here/d/b", "here/d/c"];
      for (const key of keys) await requests.putNew(key, body, crc);
      assert.equal((await requests.deleteMany([...keys.slice(0, 2), "here/d/missing"])).size, 0);
      const page = await requests.list("here/d/", "");
      assert.deepEqual(
        [page.objects.map(({ key, length }) => [key, length]), page.isLast],
        [[["here/d/c", 100]], true],
      );
      assert.deepEqual(await requests.list("here/d/", "here/d/c"), { objects: [], isLast: true });
      assert.equal(await requests.client.versioning(), "");
    });
  });
}
