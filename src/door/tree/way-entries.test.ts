// Folders of shares and groups, where the servers of some roots do not answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { ClientError } from "#client/terminal/client-error.ts";
import { GroveTree } from "./grove-tree.ts";
import { wayEntries } from "./way-entries.ts";

const FOLDER = "Shared with me";

/** A tree of somebody with whom these owners share all; those with a failure are asked in vain. */
function treeOf(owners: Readonly<Record<string, Error | undefined>>): GroveTree {
  const missing = new GroveError("NO_SUCH_PATH", "there is nothing");
  const runAt = ({ root }: { readonly root: string }): Promise<unknown> => {
    const failure = root === "" ? missing : owners[root];
    if (failure !== undefined) return Promise.reject(failure);
    return Promise.resolve({ path: [root], isCollection: true, etag: "real", locks: [] });
  };
  const sharedRoots = () => Promise.resolve(Object.keys(owners).map((owner) => ({ owner, path: "/" })));
  const cluster = { runAt } as unknown as Cluster;
  return new GroveTree({ username: "bob", cluster, sharedRoots }, { steadyMs: () => 0 });
}

/** Names in the folder of shares, with the etag of each. */
async function seen(tree: GroveTree): Promise<Record<string, string>> {
  const etags: Record<string, string> = {};
  for await (const page of tree.list([FOLDER])) {
    for (const { path, etag, isCollection, mayHaveProperties } of page) {
      assert.equal(isCollection, true);
      // Its server would be asked for them, in vain again.
      if (etag === "way") assert.equal(mayHaveProperties, false);
      etags[path.at(-1) ?? ""] = etag;
    }
  }
  return etags;
}

const refused = (code: ErrorCode) => new GroveError(code, "refused");

test("roots that cannot be reached are plain folders, and those that are shared no more are left out", async () => {
  const owners = {
    "a@x": undefined,
    "b@x": new ClientError("NETWORK", "no answer"),
    "c@x": undefined,
    "d@x": refused("NOT_SHARED"),
    "e@x": refused("STARTING"),
    "f@x": refused("RATE_LIMITED"),
    "g@x": new ClientError("SERVER_BROKEN", "odd"),
    "h@x": refused("NO_SUCH_PATH"),
    "i@x": undefined,
  };
  assert.deepEqual(Object.entries(await seen(treeOf(owners))), [
    ["a@x", "real"],
    ["b@x", "way"],
    ["c@x", "real"],
    ["e@x", "way"],
    ["f@x", "way"],
    ["g@x", "way"],
    ["i@x", "real"],
  ]);
});

test("what is about the person is no matter of one root, and an error of the door's own is none", async () => {
  const ended = new ClientError("SIGN_IN_NEEDED", "over");
  await assert.rejects(seen(treeOf({ "a@x": undefined, "b@x": ended })), { status: 401 });
  await assert.rejects(seen(treeOf({ "a@x": refused("USER_DISABLED") })), { code: "USER_DISABLED" });
  await assert.rejects(seen(treeOf({ "a@x": new TypeError("a bug") })), TypeError);
});

test("entries are looked at side by side, some at a time, and after five seconds no more of them", async () => {
  let [nowMs, most] = [0, 0];
  const waiting: (() => void)[] = [];
  const look = (path: readonly string[]) => {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    assert.notEqual(path[0], "99");
    most = Math.max(
      most,
      waiting.push(() => resolve(undefined)),
    );
    return promise;
  };
  const paths = Array.from({ length: 100 }, (_, index) => [String(index)]);
  const entries = wayEntries(paths, { look, clock: { steadyMs: () => nowMs } }, true);
  assert.equal(waiting.length, 32);
  waiting.shift()?.();
  await turn();
  assert.equal(waiting.length, 32, "the next took its place");
  nowMs = 5_000;
  for (const answer of waiting) answer();
  assert.deepEqual(
    (await entries).map(({ path, etag }) => [path[0], etag]),
    paths.slice(33).map(([name]) => [name, "way"]),
  );
  assert.equal(most, 32);
});

test("what may be a file is never told as a folder: the listing fails for the moment", async () => {
  let nowMs = 0;
  const look = async ([name]: readonly string[]) => {
    nowMs += 6_000;
    if (name === "away") throw refused("STARTING");
    return undefined;
  };
  const from = { look, clock: { steadyMs: () => nowMs } };
  await assert.rejects(wayEntries([["a"], ["away"]], from, false), { code: "STARTING" });
  assert.deepEqual(await wayEntries([["a"], ["b"]], from, false), []);
});
