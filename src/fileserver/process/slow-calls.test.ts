// Tests of slow calls' log: both sides of the threshold, their waits, streams, and few lines for a flood.
import assert from "node:assert/strict";
import { test } from "node:test";
import { beginWaits, currentWaits, endWaits, waiting } from "#base/call-waits.ts";
import { ManualClock } from "#base/clock.ts";
import { type LogFields, type Logger, silentLogger } from "#base/log.ts";
import { withRequestId } from "#base/request-scope.ts";
import type { Wait } from "#base/wait-times.ts";
import { slowCalls } from "#fileserver/front/slow-calls.ts";
import type { CallContext } from "#wire/grpc/handler.ts";
import { startTestNode } from "./node.fixture.ts";

function watched(thresholdMs = 1_000) {
  const clock = new ManualClock();
  const lines: LogFields[] = [];
  const counted: ReadonlyMap<Wait, number>[] = [];
  const log: Logger = {
    ...silentLogger,
    warn: (event, fields) => lines.push({ event, ...fields }),
  };
  const telemetry = { slowCall: (waits: ReadonlyMap<Wait, number>) => counted.push(waits) };
  const interceptor = slowCalls({ telemetry, clock, log, thresholdMs });
  const run = async (
    ms: number,
    waits: Partial<Record<Wait, number>> = {},
    kind = "unary",
  ): Promise<void> => {
    const context = { method: { name: "Rename", kind }, peer: { address: "::1" } } as unknown as CallContext;
    await withRequestId(`request-${Math.random()}`, async () => {
      await interceptor(context, async () => {
        await Promise.resolve();
        for (const [wait, waited] of Object.entries(waits)) currentWaits()?.add(wait as Wait, waited);
        clock.advance(ms);
      });
      assert.equal(currentWaits(), undefined);
    });
  };
  return { clock, lines, counted, run };
}

test("a call of a second is told with what it waited for, one just below is not", async () => {
  const { lines, counted, run } = watched();
  await run(999, { disk: 990 });
  assert.deepEqual([lines, counted], [[], []]);
  await run(1_000, { disk: 700.4, queue: 250 });
  assert.deepEqual(lines, [
    { event: "slow_call", method: "Rename", address: "::1", took_ms: 1_000, disk_ms: 700, queue_ms: 250 },
  ]);
  assert.deepEqual(counted, [
    new Map([
      ["disk", 700],
      ["queue", 250],
    ]),
  ]);
});

test("a stream takes as long as its client wants; only what the node made it wait for counts", async () => {
  const { counted, run } = watched();
  await run(3_600_000, { disk: 999 }, "client_streaming");
  assert.equal(counted.length, 0);
  await run(5_000, { disk: 600, queue: 400 }, "client_streaming");
  assert.equal(counted.length, 1);
});

test("a call that fails slowly is told too; of many ten lines a minute, and all are counted", async () => {
  const { lines, counted, run } = watched();
  for (let count = 0; count < 30; count++) await run(1_000);
  assert.equal(lines.length, 10);
  assert.equal(counted.length, 30);
});

test("two calls that share an id do not mix their waits, and what nobody watches is not kept", async () => {
  await withRequestId("the-same-id", async () => {
    const first = beginWaits();
    assert.ok(first);
    assert.equal(beginWaits(), undefined);
    await waiting("sort", new Promise((resolve) => setTimeout(resolve, 20)));
    assert.ok((first.all.get("sort") ?? 0) >= 15);
    endWaits(undefined);
    assert.equal(currentWaits(), first);
    endWaits(first);
    assert.equal(await waiting("sort", Promise.resolve(7)), 7);
    assert.equal(first.all.size, 1);
    const ofOuter = beginWaits();
    await withRequestId("the-same-id", async () => {
      assert.equal(currentWaits(), undefined);
      assert.notEqual(beginWaits(), ofOuter);
    });
    assert.equal(currentWaits(), ofOuter);
  });
});

test("a node counts slow calls and their waits in /metrics, in both forms", async () => {
  const node = await startTestNode({ options: { limits: { slowCallMs: 0 } } });
  try {
    const user = await node.signIn("slow@example.com");
    await user.call.createFile({ path: "/f", data: Buffer.from("x") });
    const url = `http://127.0.0.1:${node.node.metricsPort}/metrics`;
    const metrics = (await (await fetch(url)).json()) as {
      slow_calls_total: number;
      slow_call_waits_ms: Record<string, number>;
    };
    assert.ok(metrics.slow_calls_total >= 2, `${metrics.slow_calls_total}`);
    assert.deepEqual(Object.keys(metrics.slow_call_waits_ms), [
      "queue",
      "disk",
      "sort",
      "metaserver",
      "provider",
    ]);
    const text = await (await fetch(url, { headers: { accept: "text/plain" } })).text();
    assert.match(text, /^svc_slow_calls_total \d+$/m);
    assert.match(text, /^svc_slow_call_wait_seconds_total\{for="disk"\} [\d.e-]+$/m);
  } finally {
    await node.stop();
  }
});
