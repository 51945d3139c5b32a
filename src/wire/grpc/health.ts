// The health service: reports which services serve, on request and at every change.

import {
  Health,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "#wire/framing/gen/grpc/health/v1/health_pb.ts";
import { SMALL_REQUEST } from "#wire/framing/limits.ts";
import { SharedBudget } from "#wire/framing/shared-budget.ts";
import { Code, StatusError } from "#wire/framing/status.ts";
import type { CallContext, ServiceHandlers } from "./handler.ts";
import type { GrpcServer } from "./server.ts";

/** Concurrent watchers and their shares by network or user; one more is refused. */
const WATCHERS = { total: 100, perParty: 20, spare: 20, modest: 2 };

type Reply = { status: ServingStatus };

/** grpc.health.v1.Health. The empty name stands for the server as a whole. */
export class HealthService {
  readonly #serving = new Map<string, boolean>([["", true]]);
  readonly #watchers = new Set<() => void>();
  readonly #places = new SharedBudget(WATCHERS);
  #isEnding = false;

  /** Sets whether a service serves, and notifies its watchers. */
  setServing(service: string, isServing: boolean): void {
    this.#serving.set(service, isServing);
    for (const wake of this.#watchers) wake();
  }

  /** Adds the service to a server. Draining ends every watch, which otherwise lasts as long as its client. */
  addTo(server: GrpcServer): void {
    server.addService(Health, this.handlers, { otherRequests: SMALL_REQUEST });
    server.onDrain(() => {
      this.#isEnding = true;
      for (const wake of this.#watchers) wake();
    });
  }

  /** The handlers, for callers that add the service themselves. */
  readonly handlers: ServiceHandlers<typeof Health> = {
    check: (request) => {
      const status = this.#statusOf(request.service);
      if (status === ServingStatus.SERVICE_UNKNOWN) throw new StatusError(Code.NOT_FOUND, "unknown service");
      return { status };
    },
    watch: (request, context) => this.#watch(request.service, context),
  };

  #statusOf(service: string): ServingStatus {
    const isServing = this.#serving.get(service);
    if (isServing === undefined) return ServingStatus.SERVICE_UNKNOWN;
    return isServing ? ServingStatus.SERVING : ServingStatus.NOT_SERVING;
  }

  async *#watch(service: string, context: CallContext): AsyncGenerator<Reply, void, undefined> {
    const { party } = context.standing;
    if (!this.#places.take(party, 1)) throw new StatusError(Code.RESOURCE_EXHAUSTED, "too many watchers");
    let wake: () => void = () => undefined;
    const onChange = (): void => wake();
    this.#watchers.add(onChange);
    context.signal.addEventListener("abort", onChange, { once: true });
    try {
      let told: ServingStatus | undefined;
      while (!context.signal.aborted) {
        const changed = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const status = this.#statusOf(service);
        if (status !== told) {
          told = status;
          yield { status };
        }
        if (this.#isEnding) throw new StatusError(Code.UNAVAILABLE, "the server is stopping");
        await changed;
      }
    } finally {
      this.#watchers.delete(onChange);
      this.#places.give(party, 1);
    }
  }
}
