// Silences, by which operators mute notifications for a while, in Alertmanager's form (decision D11).
import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { type Random, systemRandom } from "#base/random.ts";
import { ulid } from "#base/ulid.ts";
import {
  type Silence,
  type SilenceMatcher,
  type SilenceRequest,
  type StoredSilence,
  storedSilence,
} from "#wire/webapi/notification.ts";
import { JsonStateFile } from "./json-state-file.ts";
import { compilePattern } from "./safe-pattern.ts";
import { timesOf } from "./silence-times.ts";

/** Silences kept, ended ones included; ended ones are removed for new ones. */
const SILENCES_MAX = 1_000;
/** Time for which an ended silence is listed: five days, as in Alertmanager. */
export const SILENCE_KEPT_MS: number = 120 * 3_600_000;

/** Name of the file in the console's data folder. */
export const SILENCES_FILE = "silences.json";

/** The labels that silences match; a missing label is empty, as in Alertmanager. */
export type SilenceLabels = Readonly<Partial<Record<SilenceMatcher["name"], string>>>;

/** What the store needs. */
export interface SilenceStoreDeps {
  readonly dataFolder: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly random?: Random;
}

interface Entry {
  readonly kept: StoredSilence;
  readonly matches: (labels: SilenceLabels) => boolean;
}

const FILE_SHAPE = z.object({ silences: z.array(storedSilence) });

/**
 * All silences. They begin and end by the wall clock; changes are on stable storage before they take effect.
 */
export class SilenceStore {
  /** New path of a damaged file at the start; undefined without damage. */
  readonly setAsideAs: string | undefined;
  readonly #deps: SilenceStoreDeps;
  readonly #file: JsonStateFile<z.infer<typeof FILE_SHAPE>>;
  #entries: ReadonlyMap<string, Entry>;
  /** Changes run one after another. */
  #lastChange: Promise<unknown> = Promise.resolve();

  private constructor(
    deps: SilenceStoreDeps,
    file: JsonStateFile<z.infer<typeof FILE_SHAPE>>,
    entries: ReadonlyMap<string, Entry>,
    setAsideAs: string | undefined,
  ) {
    this.setAsideAs = setAsideAs;
    this.#deps = deps;
    this.#file = file;
    this.#entries = entries;
  }

  /** Reads the file, a missing one as empty. Sets a damaged one aside, because too many alerts are safer. */
  static async open(deps: SilenceStoreDeps): Promise<SilenceStore> {
    const { file, content, setAsideAs } = await JsonStateFile.open({
      path: join(deps.dataFolder, SILENCES_FILE),
      shape: FILE_SHAPE,
      clock: deps.clock,
      log: deps.log,
    });
    const entries = new Map<string, Entry>();
    for (const kept of content?.silences ?? []) {
      try {
        entries.set(kept.id, entryOf(kept));
      } catch (error) {
        deps.log.error("silence_unusable", { silence: kept.id, error: errorText(error) });
      }
    }
    return new SilenceStore(deps, file, entries, setAsideAs);
  }

  /** True while an active silence matches. */
  isSilenced(labels: SilenceLabels): boolean {
    const now = this.#nowSeconds();
    for (const { kept, matches } of this.#entries.values()) {
      if (stateOf(kept, now) === "active" && matches(labels)) return true;
    }
    return false;
  }

  /** All silences: active, pending, ended; the newest of each first. */
  list(): Silence[] {
    const now = this.#nowSeconds();
    const order = { active: 0, pending: 1, expired: 2 };
    return [...this.#entries.values()]
      .map(({ kept }) => ({ ...kept, state: stateOf(kept, now) }))
      .toSorted((a, b) => order[a.state] - order[b.state] || (a.id < b.id ? 1 : -1));
  }

  /**
   * Adds a silence; resolves when it is on stable storage and in force. Throws BAD_ARGUMENT with metadata
   * `pointer` for one that has ended, is longer than a year, or would match everything. Throws OVERLOADED
   * when too many have not ended.
   */
  add(request: SilenceRequest, createdBy: string): Promise<Silence> {
    return this.#change(() => {
      const now = this.#nowSeconds();
      const { startsAt, endsAt } = timesOf(request, now);
      const kept: StoredSilence = {
        id: ulid(this.#deps.clock, this.#deps.random ?? systemRandom),
        matchers: request.matchers,
        starts_at: startsAt,
        ends_at: endsAt,
        created_by: request.created_by ?? createdBy,
        created_at: now,
        comment: request.comment,
      };
      const entry = entryOf(kept);
      if (entry.matches({})) {
        throw refusal(
          "/matchers",
          "at least one matcher must not match the empty text: this would silence everything",
        );
      }
      const entries = this.#withRoom(now);
      entries.set(kept.id, entry);
      return { entries, answer: { ...kept, state: stateOf(kept, now) } };
    });
  }

  /**
   * Ends a silence now, or cancels a pending one; resolves with the changed silence when it is on stable
   * storage. Undefined for an unknown id.
   */
  end(id: string): Promise<Silence | undefined> {
    return this.#change(() => {
      const entry = this.#entries.get(id);
      if (entry === undefined) return { entries: undefined, answer: undefined };
      const now = this.#nowSeconds();
      const isOver = stateOf(entry.kept, now) === "expired";
      const startsAt = Math.min(entry.kept.starts_at, now);
      const kept = isOver ? entry.kept : { ...entry.kept, starts_at: startsAt, ends_at: now };
      const answer: Silence = { ...kept, state: "expired" };
      return { entries: isOver ? undefined : new Map(this.#entries).set(id, { ...entry, kept }), answer };
    });
  }

  #change<R>(change: () => { entries: ReadonlyMap<string, Entry> | undefined; answer: R }): Promise<R> {
    const mine = this.#lastChange.then(async () => {
      const { entries, answer } = change();
      if (entries !== undefined) {
        await this.#file.save({ silences: [...entries.values()].map(({ kept }) => kept) });
        this.#entries = entries;
      }
      return answer;
    });
    this.#lastChange = mine.catch(() => undefined);
    return mine;
  }

  /** A copy with room for one more; old ended silences are left out, and when full the oldest ended ones. */
  #withRoom(now: number): Map<string, Entry> {
    const entries = new Map(this.#entries);
    for (const [id, { kept }] of this.#entries) {
      if (now - kept.ends_at > SILENCE_KEPT_MS / 1_000) entries.delete(id);
    }
    for (const [id, { kept }] of entries) {
      if (entries.size < SILENCES_MAX) break;
      if (stateOf(kept, now) === "expired") entries.delete(id);
    }
    if (entries.size < SILENCES_MAX) return entries;
    throw new GroveError("OVERLOADED", `there are ${SILENCES_MAX} silences already; end some of them first`);
  }

  #nowSeconds(): number {
    return Math.trunc(this.#deps.clock.wallMs() / 1_000);
  }
}

function stateOf(kept: StoredSilence, nowSeconds: number): Silence["state"] {
  if (nowSeconds >= kept.ends_at) return "expired";
  return nowSeconds >= kept.starts_at ? "active" : "pending";
}

function entryOf(kept: StoredSilence): Entry {
  const matchers = kept.matchers.map(({ name, value, is_regex }, at) => {
    if (!is_regex) return (labels: SilenceLabels) => (labels[name] ?? "") === value;
    const pattern = compilePattern(value);
    if (typeof pattern !== "function") throw refusal(`/matchers/${at}/value`, pattern.problem);
    return (labels: SilenceLabels) => pattern(labels[name] ?? "");
  });
  return { kept, matches: (labels) => matchers.every((matcher) => matcher(labels)) };
}

function refusal(pointer: string, message: string): GroveError {
  return new GroveError("BAD_ARGUMENT", message, { metadata: { pointer } });
}
