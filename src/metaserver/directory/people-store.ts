// The metadata store's interface about people: persons behind addresses (D21), and decisions about users.

import type { UserState } from "#base/user-state.ts";
import type { Group, GroupBook, GroupChange } from "#security/policy/group.ts";
import type {
  AddressChange,
  ChangeUnderWay,
  KnownElsewhere,
  Rebinding,
  Subject,
  SubjectRecord,
  WantedChange,
} from "./subject.ts";

/** What an operator does about changed addresses. */
export type AddressCommand = "changeAddress" | "changesUnderWay" | "refuseAddress" | "wantedChanges";

/** The store's commands about people. */
export interface PeopleStore {
  /**
   * True when the address belongs to this person, who gets a new address for all MetaServers; false when it
   * belongs to another (D21). A person who is known under another address waits for an operator's word. Throws
   * STARTING while nodes still have what was another's under it.
   */
  admitSubject(username: string, person: Subject): Promise<boolean | KnownElsewhere>;

  /** People who wait for an operator's word on their new address, the latest first. */
  wantedChanges(): Promise<WantedChange[]>;

  /** Confirmed changes of addresses that some node has not carried out yet. */
  changesUnderWay(): Promise<ChangeUnderWay[]>;

  /**
   * Confirms a change: root, shares, groups and app passwords go to the new address. Throws BAD_ARGUMENT, saying
   * why, when nobody waits for it or it cannot be.
   */
  changeAddress(from: string, to: string): Promise<AddressChange>;

  /** Refuses a change; false when nobody waits for it. */
  refuseAddress(from: string, to: string): Promise<boolean>;

  /** Notes up to which version a node has carried out changes of addresses. */
  noteChangesHeard(fsId: string, version: bigint): Promise<void>;

  /** The person behind an address; undefined when unknown. */
  findSubject(username: string): Promise<SubjectRecord | undefined>;

  /**
   * The persons of an issuer, by address, after a given one: pages of at most 1000; a shorter one ends it.
   */
  subjectsOf(issuer: string, afterUsername?: string): Promise<SubjectRecord[]>;

  /**
   * Rebinds addresses to other persons, all or none, and returns the version of that; nodes learn of it with
   * their next heartbeat. Throws BAD_ARGUMENT when an address belongs to another person than expected.
   */
  rebindSubjects(rebindings: readonly Rebinding[]): Promise<bigint>;

  /** Administrators' decisions about users, by username. */
  userStates(): Promise<UserState[]>;

  /** Changes with every change of the decisions, by any writer; empty before the first. */
  userStatesMark(): Promise<string>;

  /**
   * Stores those that are newer than the known decisions about their users, with the known person, and
   * returns the valid ones. Throws BAD_ARGUMENT, OVERLOADED.
   */
  putUserStates(states: readonly UserState[]): Promise<UserState[]>;

  /** All groups by name, and what people's claims say of them. Registrations do not restore them. */
  groupBook(): Promise<GroupBook>;

  /** Changes with every change of the groups, by any writer; empty before the first. */
  groupsMark(): Promise<string>;

  /**
   * Applies a change, and returns the group as it was before: undefined for a new one, and for claims. Throws
   * BAD_ARGUMENT for a missing group or one that exists, OVERLOADED beyond the limits.
   */
  changeGroups(change: GroupChange): Promise<Group | undefined>;

  /** True for a user who wants no notices. Registrations do not restore it. */
  noticesOff(username: string): Promise<boolean>;

  /** Turns a user's notices off, or on again. */
  setNoticesOff(username: string, isOff: boolean): Promise<void>;
}
