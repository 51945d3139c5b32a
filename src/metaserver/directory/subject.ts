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
