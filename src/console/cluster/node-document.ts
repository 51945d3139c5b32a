// Checks a node's answer to GET /metrics field by field, because a node may send anything (M-05).
import { isUtf8 } from "node:buffer";
import { parse64 } from "#base/json64.ts";
import { CONSOLE_USERS_MAX, type NodeReading } from "./cluster-state.ts";
import { readSingleFields, type SingleFields } from "./document-fields.ts";
import { PollError } from "./poll-error.ts";
import {
  NEAR_MAP_NAMES,
  type ReadMap,
  type Turn,
  USER_MAP_NAMES,
  type UserMapName,
  UserPart,
} from "./user-part.ts";

/**
 * Users near their quota that the console keeps beside CONSOLE_USERS_MAX, because alerts do not depend on the
 * lists (spec 2.7).
 */
const CONSOLE_NEAR_USERS_MAX = 100_000;
/** Users that every node may list, however many the others have. */
export const CONSOLE_USERS_PER_NODE_FREE = 200;

/** Bytes outside the maps of users that are parsed at once, which takes some milliseconds. */
const PARSED_AT_ONCE_MAX_BYTES = 131_072;
const CLOSING_BRACE = 0x7d;
/** The first bytes of each map; nodes write no blanks. */
const MARKS: Readonly<Record<UserMapName, Buffer>> = {
  per_user_storage: Buffer.from(',"per_user_storage":{'),
  per_user_quota: Buffer.from(',"per_user_quota":{'),
  per_user_detail: Buffer.from(',"per_user_detail":{'),
  near_quota_storage: Buffer.from(',"near_quota_storage":{'),
  near_quota_limit: Buffer.from(',"near_quota_limit":{'),
};

type Document = Readonly<Record<string, unknown>>;

/**
 * Limits the users of all nodes together, so that a malicious node cannot fill the memory. Users near their
 * quota count apart.
 */
export class UserAllowance {
  /** For users near their quota, so that the lists of all users leave room for alerts. */
  readonly near: UserAllowance | undefined;
  readonly #max: number;
  readonly #claims = new Map<string, number>();
  #total = 0;

  constructor(max: number = CONSOLE_USERS_MAX, nearMax: number | null = CONSOLE_NEAR_USERS_MAX) {
    this.#max = max;
    this.near = nearMax === null ? undefined : new UserAllowance(nearMax, null);
  }

  /** Claims room for a node's users in place of its earlier claim; false, and no claim, without room. */
  claim(nodeId: string, users: number): boolean {
    const before = this.#claims.get(nodeId) ?? 0;
    const fits = users <= CONSOLE_USERS_PER_NODE_FREE || this.#total - before + users <= this.#max;
    const granted = fits ? users : 0;
    this.#claims.set(nodeId, granted);
    this.#total += granted - before;
    return fits;
  }

  /** Releases a node's room. */
  release(nodeId: string): void {
    this.#total -= this.#claims.get(nodeId) ?? 0;
    this.#claims.delete(nodeId);
    this.near?.release(nodeId);
  }
}

/** Reads one node's documents, one at a time, poll after poll. */
export class NodeDocument {
  readonly #nodeId: string;
  readonly #allowance: UserAllowance;
  readonly #turn: Turn;
  readonly #parts: { readonly [N in UserMapName]: UserPart<N> } = {
    per_user_storage: new UserPart("per_user_storage"),
    per_user_quota: new UserPart("per_user_quota"),
    per_user_detail: new UserPart("per_user_detail"),
    near_quota_storage: new UserPart("near_quota_storage"),
    near_quota_limit: new UserPart("near_quota_limit"),
  };

  constructor(nodeId: string, allowance: UserAllowance, turn: Turn = nextTurn) {
    this.#nodeId = nodeId;
    this.#allowance = allowance;
    this.#turn = turn;
  }

  /** Reads a document. Rejects with PollError for invalid JSON, no valid metric, or too many users. */
  async read(body: Buffer): Promise<NodeReading> {
    if (!isUtf8(body)) throw new PollError("the document is not valid UTF-8");
    const { fields, maps } = (await this.#readByParts(body)) ?? this.#readWhole(body);
    if (!fields.isMetrics) throw new PollError("the document holds no metrics");
    return this.#reading(fields, maps);
  }

  /**
   * Reads the single fields, and each map of users on its own. A wrong cut shows, because its parts are no
   * JSON. Resolves to undefined when the bytes have another layout.
   */
  async #readByParts(body: Buffer): Promise<Content | undefined> {
    const end = body.lastIndexOf(CLOSING_BRACE);
    const cuts = USER_MAP_NAMES.map((name) => ({ name, at: body.indexOf(MARKS[name]) }))
      .filter((cut) => cut.at >= 0)
      .sort((a, b) => a.at - b.at);
    const headEnd = cuts[0]?.at ?? end;
    if (end < 0 || headEnd > PARSED_AT_ONCE_MAX_BYTES || body.toString("utf8", end + 1).trim() !== "")
      return undefined;
    try {
      const document = parseHead(`${body.toString("utf8", 0, headEnd)}}`);
      const maps: Partial<Maps> = {};
      for (const [index, { name, at }] of cuts.entries()) {
        const behind = await this.#takePart(name, body.subarray(at, cuts[index + 1]?.at ?? end), maps);
        Object.assign(document, behind);
      }
      for (const name of USER_MAP_NAMES) this.#takeParsed(name, document, maps);
      return { fields: readSingleFields(document), maps };
    } catch (error) {
      if (error instanceof SyntaxError) return undefined;
      throw error;
    }
  }

  async #takePart(name: UserMapName, bytes: Buffer, maps: Partial<Maps>): Promise<Document> {
    const { read, behind } = await this.#parts[name].take(bytes, this.#turn, maps.per_user_storage?.users);
    Object.assign(maps, { [name]: read });
    return behind;
  }

  #readWhole(body: Buffer): Content {
    if (body.length > PARSED_AT_ONCE_MAX_BYTES) throw new PollError("the document cannot be read in pieces");
    const document = parseObject(body.toString("utf8"));
    const maps: Partial<Maps> = {};
    for (const name of USER_MAP_NAMES) this.#takeParsed(name, document, maps);
    return { fields: readSingleFields(document), maps };
  }

  #takeParsed(name: UserMapName, document: Document, maps: Partial<Maps>): void {
    if (!Object.hasOwn(document, name)) return;
    Object.assign(maps, {
      [name]: this.#parts[name].takeParsed(document[name], maps.per_user_storage?.users),
    });
  }

  #reading({ values, invalid }: SingleFields, maps: Partial<Maps>): NodeReading {
    const isWithheld = USER_MAP_NAMES.every((name) => maps[name] === undefined);
    const users = Math.max(...LIST_NAMES.map((name) => maps[name]?.users.size ?? 0));
    const fits = this.#allowance.claim(this.#nodeId, users);
    const nearQuota = this.#near(maps);
    const parts = this.#parts;
    const [storage, quota, detail] = [
      fits ? maps.per_user_storage : undefined,
      fits ? maps.per_user_quota : undefined,
      fits ? maps.per_user_detail : undefined,
    ];
    return {
      ...values,
      usersWithheld: isWithheld,
      perUserStorage: (storage ?? parts.per_user_storage.clear()).users,
      perUserQuota: (quota ?? parts.per_user_quota.clear()).users,
      perUserDetail: (detail ?? parts.per_user_detail.clear()).users,
      nearQuota,
      invalidFields: [
        ...invalid,
        ...LIST_NAMES.filter((name) => !fits || maps[name]?.isValid === false || isMissing(name, maps)),
        ...NEAR_MAP_NAMES.filter((name) => maps[name]?.isValid === false),
      ],
    };
  }

  /** Undefined for a node without the list of near users, and for one with more than there is room for. */
  #near({ near_quota_storage: storage, near_quota_limit: limit }: Partial<Maps>): NodeReading["nearQuota"] {
    const users = Math.max(storage?.users.size ?? 0, limit?.users.size ?? 0);
    const fits = this.#allowance.near?.claim(this.#nodeId, users) === true;
    if (fits && storage !== undefined && limit !== undefined)
      return { storage: storage.users, limit: limit.users };
    for (const name of NEAR_MAP_NAMES) this.#parts[name].clear();
    return null;
  }
}

type Maps = { [N in UserMapName]: ReadMap<N> };

interface Content {
  readonly fields: SingleFields;
  readonly maps: Partial<Maps>;
}

/** The lists of all users. */
const LIST_NAMES = USER_MAP_NAMES.filter((name) => !NEAR_MAP_NAMES.some((near) => near === name));

/** The two maps of spec 2.7 come together or, guarded by a token, not at all (T8). The third is optional. */
function isMissing(name: UserMapName, maps: Partial<Maps>): boolean {
  if (maps[name] !== undefined || name === "per_user_detail") return false;
  return USER_MAP_NAMES.some((other) => maps[other] !== undefined);
}

function parseObject(text: string): Document {
  const parsed = parse64(text);
  if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) {
    throw new SyntaxError("not an object");
  }
  return parsed as Document;
}

/** Parses with JSON.parse; only a rounded integer needs `parseObject`, which takes three times as long. */
function parseHead(text: string): Record<string, unknown> {
  const parsed: unknown = JSON.parse(text);
  if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) {
    throw new SyntaxError("not an object");
  }
  const document = parsed as Record<string, unknown>;
  return Object.values(document).some(mayBeRounded) ? { ...parseObject(text) } : document;
}

function mayBeRounded(value: unknown): boolean {
  if (typeof value === "number") return Number.isInteger(value) && !Number.isSafeInteger(value);
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
