// Which data of a poll reaches the history (spec 2.10, M-05).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { UserUsage } from "#console/history/node-sample.ts";
import { nodeReading, testCluster } from "./cluster-state.fixture.ts";
import { feedHistory } from "./history-feed.ts";

test("the forecast of a user is fed by the home node alone, and by anybody while the home is not known (M-05)", () => {
  const { clusterState } = testCluster("n1", "n2");
  const homes = new Map([["ann@example.com", "n1"]]);
  const heard: string[] = [];
  const end = feedHistory(
    clusterState,
    {
      record: () => undefined,
      recordGap: () => undefined,
      recordUsers: (nodeId: string, _wallMs: number, users: Iterable<UserUsage>) => {
        for (const [username] of users) heard.push(`${username} by ${nodeId}`);
      },
    },
    { current: homes, refresh: () => Promise.resolve() },
  );
  const both = new Map([
    ["ann@example.com", 5n],
    ["bob@example.com", 5n],
  ]);
  for (const id of ["n1", "n2"]) {
    clusterState.answered(id, nodeReading({ perUserStorage: both, perUserQuota: both }));
  }
  assert.deepEqual(heard, ["ann@example.com by n1", "bob@example.com by n1", "bob@example.com by n2"]);
  end();
  clusterState.close();
});

test("the history has a poll before those who listened already ask it", () => {
  const { clusterState } = testCluster("n1");
  const heard: string[] = [];
  clusterState.onPoll(() => heard.push("asked"));
  feedHistory(
    clusterState,
    {
      record: () => heard.push("sample"),
      recordGap: () => heard.push("gap"),
      recordUsers: () => undefined,
    },
    { current: new Map(), refresh: () => Promise.resolve() },
  );
  clusterState.answered("n1", nodeReading());
  clusterState.failed("n1", "reset");
  assert.deepEqual(heard, ["sample", "asked", "gap", "asked"]);
  clusterState.close();
});
