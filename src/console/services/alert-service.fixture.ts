// A fixture for the alert service: it sets the outcome of each poll, and records the events.

import { silentLogger } from "#base/log.ts";
import type { AlertEvent } from "#console/alerts/alert-state-machine.ts";
import { nodeReading, testCluster } from "#console/cluster/cluster-state.fixture.ts";
import type { NodeReading, SecurityEvent } from "#console/cluster/cluster-state.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { AlertService, type AlertServiceDeps } from "./alert-service.ts";

/** A service under test. */
export interface ServiceUnderTest extends ReturnType<typeof testCluster> {
  readonly service: AlertService;
  readonly events: AlertEvent[];
  readonly window: { errors: number; ops: number };
  /** Runs one poll round with these answers, null for none, and saves its outcome. */
  round(
    answers: Readonly<Record<string, Partial<NodeReading> | null>>,
    security?: SecurityEvent[],
  ): Promise<string[]>;
}

/** Starts a service over nodes of these ids; `ends` receives its cleanup. */
export async function startService(
  ends: (() => Promise<unknown>)[],
  nodes: readonly string[],
  overrides: Partial<AlertServiceDeps> = {},
): Promise<ServiceUnderTest> {
  const folder = scratchFolder("grove-service-");
  const { clusterState, clock } = testCluster(...nodes);
  const window = { errors: 0, ops: 0, failingRun: 0 };
  const service = await AlertService.open({
    folder,
    clock,
    log: silentLogger,
    cluster: clusterState,
    history: { errorWindow: () => window, forecastDiskFullDays: () => undefined },
    isDefaultPassword: () => false,
    ...overrides,
  });
  const events: AlertEvent[] = [];
  service.onEvent((event) => events.push(event));
  ends.push(async () => {
    clusterState.close();
    await service.close();
  });
  return {
    clusterState,
    clock,
    service,
    events,
    window,
    async round(answers, security = []) {
      const before = events.length;
      for (const [id, answer] of Object.entries(answers)) {
        if (answer === null) clusterState.failed(id, "timeout");
        else clusterState.answered(id, nodeReading(answer), security);
      }
      clock.advance(5_000);
      await service.saved();
      return events.slice(before).map(({ kind, alert }) => `${kind} ${alert.key} ${alert.severity}`);
    },
  };
}
