// A person's new username in what a node stores (D34).

/** A person's username that another takes the place of. */
export interface UserRename {
  readonly from: string;
  readonly to: string;
  /** Grows with each rename in the cluster. */
  readonly version: number;
}

/** Renames of people, part of Storage. */
export interface UserRenames {
  /**
   * Puts a person's new username in place of the old one: as owner, in shares, trash, uploads and locks. Answers how
   * many rows had it; what `renamedUpTo` covers is not repeated. Throws PATH_EXISTS when both have a root here,
   * BAD_ARGUMENT while the root moves.
   */
  renameUser(rename: UserRename): Promise<number>;
  /** The version of the last rename that was carried out here. */
  renamedUpTo(): number;
}
