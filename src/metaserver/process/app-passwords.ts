// Checks app passwords and sessions of browsers that doors bring: whose they are, and whether they still count.
import { LRUCache } from "lru-cache";
import { atMost } from "#base/at-most.ts";
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError } from "#base/errors.ts";
import { networkOf } from "#base/network.ts";
import { SlidingWindow } from "#base/sliding-window.ts";
import { USE_NOTED_EVERY_MS } from "#metaserver/directory/credential-commands.ts";
import type { AppPasswordRecord, DoorSessionRecord } from "#metaserver/directory/credential-store.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import { type DoorSecretKind, readDoorSecret } from "#security/tickets/app-password.ts";
import { type Scope, WHOLE_SCOPE } from "#security/tickets/scope.ts";
import type { DoorSpeaker } from "./door-speaker.ts";
import type { NodeSpeakerDeps } from "./node-speaker.ts";
import type { SubjectGate } from "./subject-gate.ts";
import type { UserStateGate } from "./user-state-gate.ts";

/** Wrong app passwords of one network in a minute; more are answered RATE_LIMITED. */
export const WRONG_APP_PASSWORDS_PER_MINUTE = 10;
/** App passwords that were right lately, which a neighbour's wrong ones do not shut out. */
const RIGHT_KEPT = 10_000;

const NO_HASH = "0".repeat(64);

/** Dependencies of the check. */
export interface AppPasswordDeps extends NodeSpeakerDeps {
  readonly directory: Directory;
  readonly subjects: SubjectGate;
  readonly userStates: Pick<UserStateGate, "requireEntry">;
}

/** How long a sign-in counts as recent: for making credentials, and for sharing. */
export const RECENT_SIGN_IN_MS = 600_000;
/** How long a browser's session lasts without a use. */
export const DOOR_SESSION_IDLE_MS: number = 24 * 3_600_000;

/** A person who has come to a door. */
export interface Identified {
  readonly record: Pick<AppPasswordRecord, "endsMs" | "id" | "issuer" | "owner" | "subject">;
  readonly scope: Scope;
  /** "app:" or "browser:", and the id. */
  readonly credential: string;
  /** Wall time until which a browser's sign-in is recent; undefined for an app password. */
  readonly recentUntilMs?: number | undefined;
}

/** One of either kind, as it is kept. */
type Kept =
  | { readonly kind: "app"; readonly record: AppPasswordRecord }
  | { readonly kind: "browser"; readonly record: DoorSessionRecord };

/** The app passwords of one MetaServer. */
export class AppPasswords {
  readonly #deps: AppPasswordDeps;
  readonly #wrong: SlidingWindow;
  /** Hashes in hex. */
  readonly #right = new LRUCache<string, true>(atMost(RIGHT_KEPT));
  /** Hashes of those that were right and have ended: a program that goes on with one guesses nothing. */
  readonly #over = new LRUCache<string, true>(atMost(RIGHT_KEPT));
  /** Wall times of uses that were noted, by id and door. */
  readonly #noted = new LRUCache<string, number>(atMost(RIGHT_KEPT));

  constructor(deps: AppPasswordDeps) {
    this.#deps = deps;
    this.#wrong = new SlidingWindow(deps.clock, {
      count: WRONG_APP_PASSWORDS_PER_MINUTE,
      windowMs: 60_000,
    });
  }

  /**
   * The person behind an app password. A wrong checksum costs no look-up. Throws TOKEN_REJECTED, with one text
   * for all that is unknown; RATE_LIMITED; USER_DISABLED; the store's errors.
   */
  async identify(text: string, door: DoorSpeaker): Promise<Identified> {
    const { clock, mock } = this.#deps;
    const shown = readDoorSecret(text);
    if (shown === undefined) throw unknown();
    const hash = shown.hash.toString("hex");
    const kept = await this.#counted(hash, door, async () => {
      const found = await this.#find(shown.kind, shown.id);
      const isEqual = constantTimeEqual(hash, found?.record.hash ?? NO_HASH);
      return found !== undefined && isEqual ? found : undefined;
    });
    const { owner, issuer, subject, createdMs } = kept.record;
    if (isOver(kept, clock.wallMs()))
      throw new GroveError("TOKEN_REJECTED", "this app password or sign-in has ended; make another");
    if (subject === "" && !mock) throw unknown();
    const person = { username: owner, issuer, subject };
    // One from before an operator ended the user's sessions has ended with them.
    this.#deps.userStates.requireEntry(person, { exactMs: createdMs });
    await this.#deps.subjects.admit(person);
    this.#noteUse(kept, door);
    return identifiedOf(kept);
  }

  /** One with this hash, in hex, was just made here: nobody guesses it. */
  made(hash: string): void {
    this.#right.set(hash, true);
  }

  async #find(kind: DoorSecretKind, id: string): Promise<Kept | undefined> {
    const { directory } = this.#deps;
    if (kind === "app") {
      const record = await directory.findAppPassword(id);
      return record === undefined ? undefined : { kind, record };
    }
    const record = await directory.findDoorSession(id);
    return record === undefined ? undefined : { kind, record };
  }

  /** Counts before the look-up, so that concurrent guesses are no more than sequential ones. */
  async #counted(hash: string, door: DoorSpeaker, look: () => Promise<Kept | undefined>): Promise<Kept> {
    if (this.#over.has(hash)) throw unknown();
    const isKnown = this.#right.has(hash);
    const waitMs = isKnown ? 0 : this.#wrong.take(door.address);
    if (waitMs > 0) {
      throw new GroveError("RATE_LIMITED", "too many wrong app passwords from this network", {
        metadata: { retry_after_ms: String(waitMs) },
      });
    }
    let kept: Kept | undefined;
    try {
      kept = await look();
    } catch (error) {
      if (!isKnown) this.#wrong.giveBack(door.address);
      throw error;
    }
    if (kept === undefined) {
      if (isKnown) this.#over.set(hash, true);
      this.#right.delete(hash);
      this.#tellWrong(door);
      throw unknown();
    }
    if (!isKnown) this.#wrong.giveBack(door.address);
    this.#right.set(hash, true);
    return kept;
  }

  #tellWrong({ id, address }: DoorSpeaker): void {
    const { refusals, log } = this.#deps;
    const sampled = refusals.take(`app_password ${networkOf(address)}`);
    if (sampled !== undefined) log.warn("app_password_refused", { door: id, address, ...sampled });
  }

  /** A use that cannot be noted changes nothing for its person. */
  #noteUse({ kind, record }: Kept, door: DoorSpeaker): void {
    const { directory, clock, log } = this.#deps;
    const { id, doors } = record;
    const nowMs = clock.wallMs();
    const key = `${kind}:${id} ${door.id}`;
    const lastMs = Math.max(doors[door.id] ?? 0, this.#noted.get(key) ?? 0);
    if (Math.abs(nowMs - lastMs) < USE_NOTED_EVERY_MS) return;
    this.#noted.set(key, nowMs);
    const noted =
      kind === "app"
        ? directory.noteAppPasswordUse(id, door.id, nowMs)
        : directory.noteDoorSessionUse(id, door.id, nowMs);
    noted.catch((error: unknown) => {
      this.#noted.delete(key);
      log.debug("use_not_noted", { error: String(error) });
    });
  }
}

function isOver({ kind, record }: Kept, wallMs: number): boolean {
  if (kind === "browser") return isSessionOver(record, wallMs);
  return record.endsMs !== 0 && record.endsMs <= wallMs;
}

/** True for a browser's session that has ended by its age, or by a day without a use. */
export function isSessionOver(
  { endsMs, lastUsedMs, createdMs }: Pick<DoorSessionRecord, "createdMs" | "endsMs" | "lastUsedMs">,
  wallMs: number,
): boolean {
  return endsMs <= wallMs || wallMs - Math.max(lastUsedMs, createdMs) > DOOR_SESSION_IDLE_MS;
}

function identifiedOf({ kind, record }: Kept): Identified {
  const credential = `${kind}:${record.id}`;
  if (kind === "browser") {
    const recentUntilMs = record.createdMs + RECENT_SIGN_IN_MS;
    return { record, credential, scope: { ...WHOLE_SCOPE, sharesUntilMs: recentUntilMs }, recentUntilMs };
  }
  const folderId = record.folderId === "" ? undefined : record.folderId;
  return { record, credential, scope: { access: record.readOnly ? "read" : "write", folderId } };
}

function unknown(): GroveError {
  return new GroveError("TOKEN_REJECTED", "this app password is unknown or was revoked");
}
