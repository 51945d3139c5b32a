// Reports security events of this MetaServer to the console through the metadata store (spec 5.7, 6, D22).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventFacts, SecurityEventSink } from "#base/security-event.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { SecurityEvents } from "#telemetry/security-events.ts";

/** Pause between two writes of a MetaServer's security events to the metadata store. */
export const SECURITY_TELL_INTERVAL_MS = 2_000;

/** Dependencies of the reporter. */
export interface SecurityReporterDeps {
  readonly directory: Pick<Directory, "putSecurityReport">;
  /** Address of this MetaServer, host:port, its name in the console. Called at each report. */
  readonly source: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/**
 * Keeps the last 100 events, those of one place within ten minutes as one. Writes them to the store at most
 * once in two seconds, so a flood of attempts is one small row.
 */
export class SecurityReporter {
  readonly #deps: SecurityReporterDeps;
  readonly #events: SecurityEvents;
  #cancel: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: SecurityReporterDeps) {
    this.#deps = deps;
    this.#events = new SecurityEvents(deps);
  }

  /** Takes reports of events. */
  readonly sink: SecurityEventSink = (facts) => {
    this.#logged(facts);
    this.#cancel ??= this.#deps.clock.after(SECURITY_TELL_INTERVAL_MS, () => {
      this.#cancel = undefined;
      this.#writing = this.#write();
    });
  };

  /** Writes the remaining events. */
  async close(): Promise<void> {
    await this.#writing;
    if (this.#cancel === undefined) return;
    this.#cancel();
    this.#cancel = undefined;
    await this.#write();
  }

  /** Logs a line when a flood of one attempt begins, and at every tenfold. */
  #logged(facts: SecurityEventFacts): void {
    const { type, fatal, count, ip_seen } = this.#events.record(facts);
    if (count !== (facts.count ?? 1) && !/^10+$/.test(String(count))) return;
    this.#deps.log[fatal ? "error" : "warn"]("security_event", { type, fatal, ip_seen, count });
  }

  /** Writes the events; after a failure they go with the next event, and the log has them. */
  async #write(): Promise<void> {
    const { directory, source, log } = this.#deps;
    const document = JSON.stringify({ events: this.#events.list() });
    try {
      await directory.putSecurityReport({ source: source(), document });
    } catch (error) {
      log.warn("security_events_not_told", { error: errorText(error) });
    }
  }
}
