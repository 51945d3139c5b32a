// A FileServer closes everything in reverse order of opening, despite failures.
import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestNode } from "./node.fixture.ts";

test("where a part cannot be stopped the rest is closed, and stop says so: the folder is free for the next process", async () => {
  const first = await startTestNode();
  const { service } = first.node;
  const stopService = service.stop.bind(service);
  service.stop = async () => {
    await stopService();
    throw new Error("planted: it does not stop");
  };
  await assert.rejects(first.stop(), /planted: it does not stop/);
  const second = await startTestNode({ dataFolder: first.dataFolder });
  await second.stop();
});
