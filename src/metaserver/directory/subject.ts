// The person behind an e-mail address, as the metadata store keeps it (D21).

/** The person behind an e-mail address, by the identity provider's issuer and subject (D21). */
export interface Subject {
  /** Without `https://`, since some providers name themselves with and without it. */
  readonly issuer: string;
  /** Empty while it waits for the first from that issuer with the address. */
  readonly subject: string;
  /** Version of the address's last rebinding; 0 or undefined when there is none. The highest counts. */
  readonly version?: bigint | undefined;
}

/** An address and its person. */
export interface SubjectRecord extends Subject {
  readonly username: string;
  readonly version: bigint;
}

/** A rebound address; with the one before for a person whose address has changed. */
export interface ReboundRecord extends SubjectRecord {
  readonly former?: string;
}

/** What a node knows of changed addresses. */
export interface NamesHeard {
  /** Version of the last one that it has carried out; undefined from older nodes. */
  readonly namesVersion?: bigint | undefined;
}

/** Rebinds an address to another person, if the expected one still has it. */
export interface Rebinding {
  readonly username: string;
  readonly from: Subject;
  readonly to: Subject;
}

/** A place in the list of rebindings, ordered by version and address. */
export interface SubjectsAfter {
  readonly version: bigint;
  readonly username: string;
}

/** Most people who wait for an operator's word; beyond, the one who has waited longest is forgotten. */
export const WANTED_CHANGES_MAX = 1_000;
/** How long one waits after the last sign-in under the new address. */
export const WANTED_CHANGE_LIFE_MS: number = 30 * 24 * 3_600_000;
/** Confirmed changes that are kept for nodes which were away. */
export const ADDRESS_CHANGES_MAX = 10_000;

/** A person who has proven to be the one behind an address, and now has another. */
export interface WantedChange {
  readonly from: string;
  readonly to: string;
  readonly issuer: string;
  readonly subject: string;
  readonly firstMs: number;
  readonly lastMs: number;
}

/** A change that an operator has confirmed. */
export interface AddressChange extends SubjectRecord {
  /** The address before. */
  readonly former: string;
}

/** A confirmed change, and the nodes that have not carried it out yet. */
export interface ChangeUnderWay extends AddressChange {
  readonly waitsFor: readonly string[];
}

/** The address under which a person is known, when they come under another one. */
export interface KnownElsewhere {
  readonly knownAs: string;
  /** True where that is newer, and this address was theirs until a moment ago. */
  readonly isFormer: boolean;
}
