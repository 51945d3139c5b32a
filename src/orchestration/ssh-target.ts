// Where a node is reached over SSH, and by which key of its host it is known.

/** A node as the transport sees it; the records of the metadata store have these fields. */
export interface SshTarget {
  /** The node's id, as it is registered. */
  readonly id: string;
  /** An address or a name. */
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** The host's public key that was pinned at enrolment: `ssh-ed25519 AAAA…`, a comment may follow (D20). */
  readonly hostKey: string;
}
