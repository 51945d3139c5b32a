// The `users` of GET /api/cluster for operators: the list of users as JSON, made in slices (decision D4).
import { quotaPercent } from "#base/usage-level.ts";
import { json64Text } from "./node-view-cache.ts";
import { inTimeSlices } from "./time-slices.ts";
import { USERS_SLICE_MS, type UserList } from "./user-list.ts";
import type { MergedUser } from "./user-row.ts";

/** The users as JSON. */
export interface UsersJson {
  /** One object, in pieces. */
  readonly pieces: readonly Buffer[];
  readonly total: number;
}

/** Users whose JSON is written between two looks at the clock. */
const STEP = 256;

/** Writes the users' JSON on request, when the list has changed. */
export class ClusterUsers {
  readonly #list: Pick<UserList, "everybody">;
  #written: { readonly merge: number; readonly json: Promise<UsersJson> } | undefined;

  constructor(list: Pick<UserList, "everybody">) {
    this.#list = list;
  }

  /** All users as of the last round; the same object as before while nothing has changed. */
  async json(): Promise<UsersJson> {
    const { users, merge } = await this.#list.everybody();
    if (this.#written?.merge !== merge)
      this.#written = { merge, json: inTimeSlices(write(users), USERS_SLICE_MS) };
    return this.#written.json;
  }
}

function* write(users: readonly Readonly<MergedUser>[]): Generator<void, UsersJson> {
  const pieces: Buffer[] = [];
  for (let from = 0; from < users.length; from += STEP) {
    const entries = users
      .slice(from, from + STEP)
      .map(entryOf)
      .join(",");
    pieces.push(Buffer.from(`${from === 0 ? "{" : ","}${entries}`));
    yield;
  }
  pieces.push(Buffer.from(users.length === 0 ? "{}" : "}"));
  return { pieces, total: users.length };
}

function entryOf(user: Readonly<MergedUser>): string {
  return (
    `${JSON.stringify(user.username)}:{"used_bytes":${json64Text(user.usedBytes)},` +
    `"trash_bytes":${json64Text(user.detail?.trashBytes ?? 0n)},"quota_limit":${json64Text(user.quotaBytes)},` +
    `"quota_source":"${user.source}","usage_percent":${quotaPercent(user.usedBytes, user.quotaBytes)},` +
    `"node_id":${JSON.stringify(user.nodeId)}}`
  );
}
