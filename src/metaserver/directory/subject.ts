// Who stands behind an e-mail address, as the metadata store keeps it (D21).

/** The person behind an e-mail address, as the identity provider tells people apart (D21). */
export interface Subject {
  /** Without `https://`, since some providers name themselves with and without it. */
  readonly issuer: string;
  /** Empty while it is the first to come from that issuer with the address. */
  readonly subject: string;
  /** Of what an operator has said of the address last; 0 or undefined where none has. The highest counts. */
  readonly version?: bigint | undefined;
}

/** Whose an address is. */
export interface SubjectRecord extends Subject {
  readonly username: string;
  readonly version: bigint;
}

/** Puts another person behind an address, if it is still that one's. */
export interface Rebinding {
  readonly username: string;
  readonly from: Subject;
  readonly to: Subject;
}

/** A place in the list of what operators have said, ordered by version and address. */
export interface SubjectsAfter {
  readonly version: bigint;
  readonly username: string;
}
