// Whether a link goes on: it is there, has not ended, and its owner's shares are not closed.
import type { Clock } from "#base/clock.ts";
import type { LinkRight } from "#base/verified-identity.ts";
import type { UserStates } from "#security/identity/user-states.ts";
import type { LinkStorage, StoredLink } from "#storage/contract/links.ts";

/** Dependencies of the gate. */
export interface LinkGateDeps {
  readonly links: Pick<LinkStorage, "byId">;
  readonly users: () => Pick<UserStates, "isRetired">;
  /** True for an owner whose shares let nobody in now. */
  readonly closesShares: (owner: string) => boolean;
  readonly clock: Pick<Clock, "wallMs">;
}

/** Tells whether links go on; each look reads one row. */
export class LinkGate {
  readonly #deps: LinkGateDeps;

  constructor(deps: LinkGateDeps) {
    this.#deps = deps;
  }

  /** True for a link that opens what it is for. */
  isOpen({ owner, endsMs }: Pick<StoredLink, "endsMs" | "owner">): boolean {
    const nowMs = this.#deps.clock.wallMs();
    const { users, closesShares } = this.#deps;
    return (endsMs === 0 || endsMs > nowMs) && !closesShares(owner) && !users().isRetired(owner);
  }

  /** True while a visitor's link goes on. */
  goesOn({ id, owner }: LinkRight): boolean {
    const link = this.#deps.links.byId(id);
    return link !== undefined && link.owner === owner && this.isOpen(link);
  }
}
