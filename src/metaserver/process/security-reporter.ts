// Tells the console of security events at this MetaServer, through the metadata store that both have (spec 5.7, 6, D22).
import type { Clock } from "#base/clock.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { Random } from "#base/random.ts";
import type { SecurityEventFacts, SecurityEventSink } from "#base/security-event.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { SecurityEvents } from "#telemetry/security-events.ts";

/** Pause between two writes of a MetaServer's security events to the metadata store. */
export const SECURITY_TELL_INTERVAL_MS = 2_000;

/** What the teller is made from. */
export interface SecurityReporterDeps {
  readonly directory: Pick<Directory, "putSecurityReport">;
  /** Where this MetaServer is, host:port: what the console calls it. Asked for when something is told. */
  readonly source: () => string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/**
 * Keeps the last 100 events, those of one place within ten minutes as one, and writes them to the store once in two seconds at most: a
 * flood of attempts is one small row that is written now and then, whoever sends it.
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

  /** Writes what was not written yet. */
  async close(): Promise<void> {
    await this.#writing;
    if (this.#cancel === undefined) return;
    this.#cancel();
    this.#cancel = undefined;
    await this.#write();
  }

  /** A flood of one attempt gets a line when it begins, and at every tenfold. */
  #logged(facts: SecurityEventFacts): void {
    const { type, fatal, count, ip_seen } = this.#events.record(facts);
    if (count !== (facts.count ?? 1) && !/^10+$/.test(String(count))) return;
    this.#deps.log[fatal ? "error" : "warn"]("security_event", { type, fatal, ip_seen, count });
  }

  /** What cannot be written now goes with the next event: the log has it. */
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
