// The part of the metadata store that knows people: whose addresses are (D21), and whom administrators have locked out.
import type { UserState } from "#base/user-state.ts";
import type { Rebinding, Subject, SubjectRecord } from "./subject.ts";

/** What the store is asked about people. */
export interface PeopleStore {
  /**
   * True when the address belongs to this person, which is remembered at the first time, for all MetaServers; false when it belongs to
   * somebody else (D21).
   */
  admitSubject(username: string, person: Subject): Promise<boolean>;

  /** Who stands behind an address; undefined where nobody is known. */
  findSubject(username: string): Promise<SubjectRecord | undefined>;

  /** Whom an issuer stands for, by address, from behind one on: one page of at most 1000. A shorter page is the last. */
  subjectsOf(issuer: string, afterUsername?: string): Promise<SubjectRecord[]>;

  /**
   * Puts other persons behind addresses, all or none, and answers with the version that they have; nodes hear of it with their next heartbeat.
   * Throws BAD_ARGUMENT when an address is somebody else's than was said.
   */
  rebindSubjects(rebindings: readonly Rebinding[]): Promise<bigint>;

  /** What administrators have decided about users, by username. */
  userStates(): Promise<UserState[]>;

  /** Changes whenever those do, whoever has changed them; empty before the first. */
  userStatesMark(): Promise<string>;

  /**
   * Keeps those that are newer than what is known about their users, with the person where the store knows one, and gives what counts then.
   * Throws BAD_ARGUMENT, OVERLOADED.
   */
  putUserStates(states: readonly UserState[]): Promise<UserState[]>;
}
