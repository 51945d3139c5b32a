// Tests of an action's time: its locks and its maintenance last until the last of its nodes is through.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SshNode } from "#base/ssh-node.ts";
import { actionRequest } from "#wire/webapi/action-request.ts";
import { planFor } from "./action-arguments.ts";
import { orderOf } from "./action-batch.ts";
import { type JobNode, wholeLimitMs, worstExitCode } from "./action-job.ts";

const MINUTE_MS = 60_000;

/** A reboot of nodes, the last of which has the console. */
function reboot(count: number, maxParallel: number): number {
  const request = actionRequest.parse({
    action: "reboot",
    nodes: "all",
    strategy: { mode: "parallel", max_parallel: maxParallel },
  });
  const nodes = Array.from({ length: count }, (_, at): JobNode => {
    const services = at === count - 1 ? { fileserver: {}, admin: {} } : { fileserver: {} };
    const node: SshNode = {
      id: `n${at}`,
      host: "n.example.net",
      port: 22,
      user: "svc",
      hostKey: "ssh-ed25519 AAAA",
      repository: "grove",
      services,
    };
    return { node, plan: planFor(request, node) };
  });
  return wholeLimitMs(nodes, orderOf(request));
}

test("the console's own host comes after all others, and has its time besides (T14, D7)", () => {
  // Nine hosts at once take up to ten minutes, and then the console's own as many.
  assert.ok(reboot(10, 10) > 20 * MINUTE_MS);
  assert.ok(reboot(1, 10) < 20 * MINUTE_MS);
});

test("of nodes one by one each has the time to be ended after its own has run out (D7, E-04)", () => {
  const overMs = reboot(50, 1) - 50 * 10 * MINUTE_MS;
  // Two connections and TERM, KILL and the check between them, for each.
  assert.ok(overMs > 50 * MINUTE_MS);
});

test("an action has the exit code of its worst node: one without any that failed is worse than 0 (spec 2.9, E-05)", () => {
  const well = { state: "succeeded", exit_code: 0 } as const;
  const away = { state: "unreachable", exit_code: null } as const;
  const rebooted = { state: "succeeded", exit_code: null } as const;
  const failed = { state: "failed", exit_code: 3 } as const;
  assert.equal(worstExitCode([well, rebooted]), 0);
  assert.equal(worstExitCode([well, away]), null);
  assert.equal(worstExitCode([well, away, failed]), 3);
  assert.equal(worstExitCode([away]), null);
});
