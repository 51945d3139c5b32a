// What operators see and decide of people whose e-mail address has changed, each decision audited (D34).
import type { AuditSink } from "#base/audit-act.ts";
import { isGroveError } from "#base/errors.ts";
import { ProblemError } from "#console/http/route.ts";
import type { AddressDecision, NewAddressList } from "#wire/webapi/new-address.ts";
import type { WithNodeStore } from "./move-runner.ts";
import type { MoveActor } from "./root-move-service.ts";

/** Dependencies of the service. */
export interface NewAddressServiceDeps {
  readonly withStore: WithNodeStore;
  readonly audit: AuditSink;
  /** Resolves when the audit lines taken so far are on stable storage. */
  readonly flushAudit: () => Promise<void>;
}

/** The service. One instance for each console. */
export class NewAddressService {
  readonly #deps: NewAddressServiceDeps;

  constructor(deps: NewAddressServiceDeps) {
    this.#deps = deps;
  }

  /** Those who wait for a decision, and confirmed changes on their way to the nodes. */
  list(): Promise<NewAddressList> {
    return this.#deps.withStore(async (store) => {
      const [waiting, changing] = [await store.wantedChanges(), await store.changesUnderWay()];
      return {
        waiting: waiting.map(({ from, to, issuer, subject, firstMs, lastMs }) => ({
          from,
          to,
          issuer,
          subject,
          first_seen_at: seconds(firstMs),
          last_seen_at: seconds(lastMs),
        })),
        changing: changing.map(({ former, username, waitsFor }) => ({
          from: former,
          to: username,
          waits_for: [...waitsFor],
        })),
      };
    });
  }

  /**
   * Confirms a new address, or refuses it; another operator may have decided before. Throws NO_SUCH_USER where
   * nobody waits for it, ADDRESS_REFUSED with the reason where it cannot be confirmed.
   */
  async decide(
    decision: "confirm" | "refuse",
    { from, to }: AddressDecision,
    actor: MoveActor,
  ): Promise<NewAddressList> {
    const { withStore, audit, flushAudit } = this.#deps;
    await withStore(async (store) => {
      const wanted = (await store.wantedChanges()).find((one) => one.from === from && one.to === to);
      if (wanted === undefined) throw nobodyWaits(from, to);
      const { issuer, subject } = wanted;
      // Written before the act, so that none goes without a line.
      audit({
        act: decision === "confirm" ? "user.rename_confirm" : "user.rename_refuse",
        actor: actor.id,
        subject: from,
        request: actor.requestId,
        detail: { to, issuer, account: subject },
      });
      await flushAudit();
      if (decision === "confirm") await refusing(() => store.changeAddress(from, to));
      else if (!(await store.refuseAddress(from, to))) throw nobodyWaits(from, to);
    });
    return this.list();
  }
}

function nobodyWaits(from: string, to: string): ProblemError {
  return new ProblemError(
    "NO_SUCH_USER",
    `nobody known as ${from} waits to be ${to}: it was decided, or is too old`,
  );
}

async function refusing(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isGroveError(error, "BAD_ARGUMENT", "STARTING", "OVERLOADED")) throw error;
    throw new ProblemError("ADDRESS_REFUSED", error.message, { cause: error });
  }
}

function seconds(wallMs: number): number {
  return Math.trunc(wallMs / 1_000);
}
