// The request id of asynchronous work, of immediate work, and of both nested.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turnEnd } from "node:timers/promises";
import { currentRequestId, withoutRequest, withRequestId, withRequestIdAtOnce } from "./request-scope.ts";

const later = async (): Promise<string | undefined> => {
  await turnEnd();
  return currentRequestId();
};

test("what a request starts stays within, also after it has returned; what ends at once leaves nothing behind", async () => {
  const lasting = withRequestId("lasting-1", later);
  assert.equal(currentRequestId(), undefined);
  assert.equal(await lasting, "lasting-1");
  const [now, started] = withRequestIdAtOnce("instant-1", () => [currentRequestId(), later()]);
  assert.equal(now, "instant-1");
  assert.equal(currentRequestId(), undefined);
  assert.equal(await started, undefined);
});

test("the inner one counts, whichever kind is in which, and the outer one again after it, also when it threw", async () => {
  await withRequestId("outer-1", async () => {
    assert.equal(
      withRequestIdAtOnce("inner-1", () => currentRequestId()),
      "inner-1",
    );
    assert.throws(() =>
      withRequestIdAtOnce("inner-2", () => {
        throw new Error("failed");
      }),
    );
    assert.equal(currentRequestId(), "outer-1");
    assert.equal(await later(), "outer-1");
  });
  const inner = withRequestIdAtOnce("outer-2", () => {
    const started = withRequestId("inner-3", () => {
      assert.equal(currentRequestId(), "inner-3");
      return later();
    });
    assert.equal(currentRequestId(), "outer-2");
    return started;
  });
  assert.equal(await inner, "inner-3");
});

test("the process's own work belongs to no request that has called for it, nor does what it starts", async () => {
  await withRequestId("outer-3", async () => {
    const started = withoutRequest(() => {
      assert.equal(currentRequestId(), undefined);
      return later();
    });
    assert.equal(currentRequestId(), "outer-3");
    assert.equal(await started, undefined);
  });
  const started = withRequestIdAtOnce("instant-2", () => withoutRequest(later));
  assert.equal(await started, undefined);
});
