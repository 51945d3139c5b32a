// Carries out, on this node, the changes of people's addresses that an operator has confirmed (D34).
import type { AuditSink } from "#base/audit-act.ts";
import type { Logger } from "#base/log.ts";
import type { AllSessions } from "#fileserver/doors/all-sessions.ts";
import type { MovingRoots } from "#fileserver/operations/moving-roots.ts";
import type { OperatorLooks } from "#fileserver/operations/operator-looks.ts";
import type { RemovedUserReaper } from "#fileserver/operations/removed-user-reaper.ts";
import type { RootUsage } from "#fileserver/operations/root-usage.ts";
import type { ReboundSubject, SubjectRegistry } from "#security/identity/subject-registry.ts";
import { againWhenRowsCome } from "#storage/contract/rows-to-come.ts";
import type { Storage } from "#storage/contract/storage.ts";
import type { PersonAdmission } from "./person-admission.ts";
import type { ReboundAddress } from "./rebound-reader.ts";

/** A person with another address than before. */
export interface ChangedAddress extends ReboundSubject {
  readonly former: string;
}

/** Dependencies of the changes. */
export interface AddressChangesDeps {
  readonly storage: Pick<Storage, "renamedUpTo" | "renameUser" | "root">;
  readonly quotas: { rename(from: string, to: string): Promise<void> };
  readonly operatorLooks: Pick<OperatorLooks, "rename">;
  readonly subjects: Pick<SubjectRegistry, "rename">;
  readonly sessions: Pick<AllSessions, "endAll">;
  readonly usage: () => Pick<RootUsage, "forget" | "record">;
  readonly removals: () => Pick<RemovedUserReaper, "clear">;
  readonly audit: AuditSink;
  readonly log: Logger;
}

/** One change at a time, each of which may be repeated after a cut. */
export class AddressChanges {
  readonly #deps: AddressChangesDeps;
  readonly #underWay = new Set<string>();

  constructor(deps: AddressChangesDeps) {
    this.#deps = deps;
  }

  /** Whether a root waits for its new owner's name: every call about it is refused for a moment. */
  pausing(moves: MovingRoots): MovingRoots {
    return {
      isFrozen: (owner) => this.#underWay.has(owner) || moves.isFrozen(owner),
      addressOf: (owner) => moves.addressOf(owner),
    };
  }

  /** Applies operators' words on addresses; after a failed change the later ones wait, as they may build on it. */
  async hear(
    words: readonly ReboundAddress[],
    admission: Pick<PersonAdmission, "rebind">,
    hasRoot: (username: string) => boolean,
  ): Promise<void> {
    await admission.rebind(
      words.filter(({ formerUsername }) => formerUsername === ""),
      hasRoot,
    );
    for (const { formerUsername: former, ...word } of words)
      if (former !== "") await this.apply({ ...word, former });
  }

  /**
   * Carries one out; what this data directory has carried out before stays. Rejects with what storage and files
   * throw, with PATH_EXISTS where both addresses have a root, and with STARTING while the removal of who had the
   * former address before is not carried out: then it is to be repeated.
   */
  async apply(change: ChangedAddress): Promise<void> {
    const { storage, quotas, operatorLooks, subjects, sessions, audit, log } = this.#deps;
    const { former, username, version } = change;
    const rename = { from: former, to: username, version: Number(version) };
    if (storage.renamedUpTo() >= rename.version) return;
    // Else the files and shares of a removed user who had the former address would go to the new one.
    await this.#deps.removals().clear(former);
    this.#underWay.add(former).add(username);
    try {
      const ended = sessions.endAll(former);
      const hadRoot = (await againWhenRowsCome(() => storage.root(former))) !== undefined;
      // Files come before the rows: once these are renamed, the old name may be a newcomer's.
      await quotas.rename(former, username);
      await operatorLooks.rename(former, username);
      await subjects.rename(former, change);
      const rows = await storage.renameUser(rename);
      await this.#tellUsage(former, username);
      if (rows + ended === 0) return;
      audit({
        act: "user.rename",
        actor: "operator",
        subject: username,
        detail: { former, root: hadRoot, sessions: ended },
      });
      log.info("user_renamed", { user: username, former, root: hadRoot, sessions_ended: ended });
    } finally {
      this.#underWay.delete(former);
      this.#underWay.delete(username);
    }
  }

  async #tellUsage(former: string, username: string): Promise<void> {
    const usage = this.#deps.usage();
    usage.forget(former);
    const root = await againWhenRowsCome(() => this.#deps.storage.root(username));
    if (root !== undefined) usage.record(username, root.usage);
  }
}
