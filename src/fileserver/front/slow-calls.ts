// Logs one line and counts each slow call, with its waits.
import { beginWaits, endWaits } from "#base/call-waits.ts";
import type { Clock } from "#base/clock.ts";
import type { Logger } from "#base/log.ts";
import { LogSampler } from "#base/log-sampler.ts";
import { settled } from "#base/settled.ts";
import type { CallWaits } from "#base/wait-times.ts";
import type { NodeTelemetry } from "#telemetry/node-telemetry.ts";
import type { CallContext, ServerInterceptor } from "#wire/grpc/handler.ts";

/** Dependencies of the interceptor. */
export interface SlowCallsDeps {
  readonly telemetry: Pick<NodeTelemetry, "slowCall">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Calls that take longer are slow. A stream counts only the node's waits, not its client's pace. */
  readonly thresholdMs: number;
}

/** Watches calls; stands below the interceptor that gives requests their ids. */
export function slowCalls({ telemetry, clock, log, thresholdMs }: SlowCallsDeps): ServerInterceptor {
  const sampler = new LogSampler(clock);
  const tell = (context: CallContext, waits: CallWaits | undefined, tookMs: number): void => {
    const ms = context.method.kind === "unary" ? tookMs : (waits?.totalMs ?? 0);
    if (ms < thresholdMs) return;
    const all = waits?.all ?? new Map();
    telemetry.slowCall(all);
    const method = context.method.name;
    const sampled = sampler.take(method);
    if (sampled === undefined) return;
    const { address } = context.peer;
    const waited = Object.fromEntries(Array.from(all, ([wait, waitedMs]) => [`${wait}_ms`, waitedMs]));
    log.warn("slow_call", { method, address, took_ms: Math.round(tookMs), ...waited, ...sampled });
  };
  return (context, next) => {
    // An instant call waits for nothing.
    const waits = context.method.isInstant ? undefined : beginWaits();
    const startMs = clock.steadyMs();
    return settled(next, () => {
      endWaits(waits);
      tell(context, waits, clock.steadyMs() - startMs);
    });
  };
}
