// Checks a node's answers to GET /metrics field by field, because a node may send anything (D25, M-05).
import { isUtf8 } from "node:buffer";
import { parse64 } from "#base/json64.ts";
import { METRICS_USERS_LISTED_MAX } from "#base/limits.ts";
import type { NodeReading } from "./cluster-state.ts";
import { readSingleFields, type SingleFields } from "./document-fields.ts";
import {
  isObject,
  LIST_NAMES,
  NEAR_MAP_NAMES,
  NO_USERS,
  type ReadMap,
  readUsers,
  type UserMapName,
  type UserMapValues,
} from "./document-user-maps.ts";
import type { ListedUsersLimit } from "./listed-users-limit.ts";
import type { NodeAnswer } from "./node-http.ts";
import { PollError } from "./poll-error.ts";
import type { UserValues } from "./user-values.ts";

/** Values of a document: those of the most users, and a third more. */
const DOCUMENT_VALUES_MAX: number = 16 * METRICS_USERS_LISTED_MAX;
/** Bytes of a document that is parsed again where numbers were rounded: at worst in some 0.3 s. */
const PARSED_EXACTLY_MAX_BYTES = 1_048_576;
/** The field of a difference that holds the version to which it is one. */
const DIFFERENCE_MARK = "users_since";
/** The entity tag of an answer that a difference can be asked for. */
const VERSION_TAG = /^"(users-[0-9a-f]{1,32}-\d{1,15})"$/;

type Document = Readonly<Record<string, unknown>>;
type Maps = { readonly [N in UserMapName]?: ReadMap<UserMapValues[N]> | undefined };

interface Content {
  readonly fields: SingleFields;
  readonly maps: Maps;
  /** True when JSON.parse may have rounded an invalid value. */
  readonly isRounded: boolean;
}

/** Reads one node's answers, poll after poll. */
export class NodeDocument {
  readonly #nodeId: string;
  readonly #listedUsers: ListedUsersLimit;
  #maps: Maps = {};
  /** Version of the answer that the maps are from; undefined unless all of them were kept as they came. */
  #version: string | undefined;
  #asked: string | undefined;

  constructor(nodeId: string, listedUsers: ListedUsersLimit) {
    this.#nodeId = nodeId;
    this.#listedUsers = listedUsers;
  }

  /**
   * The path of the next request, for a difference if there is a version (D25). Without a good answer to it
   * the one after that is for the whole document.
   */
  ask(): string {
    [this.#asked, this.#version] = [this.#version, undefined];
    return this.#asked === undefined ? "/metrics" : `/metrics?since=${this.#asked}`;
  }

  /** Reads the answer. Throws PollError for invalid JSON, no valid metric, or too many users. */
  read({ body, etag }: NodeAnswer): NodeReading {
    if (!isUtf8(body)) throw new PollError("the document is not valid UTF-8");
    if (hasTooManyValues(body)) throw new PollError("the document has too many values");
    const text = body.toString("utf8");
    let content = this.#contentOf(parsed(text, JSON.parse));
    // Values that JSON.parse rounded are invalid; a large document is left at that.
    if (content.isRounded && body.length <= PARSED_EXACTLY_MAX_BYTES) {
      content = this.#contentOf(parsed(text, parse64));
    }
    if (!content.fields.isMetrics) throw new PollError("the document holds no metrics");
    return this.#take(content, VERSION_TAG.exec(etag ?? "")?.[1]);
  }

  #contentOf(document: Document): Content {
    const isDifference = Object.hasOwn(document, DIFFERENCE_MARK);
    if (isDifference && (this.#asked === undefined || document[DIFFERENCE_MARK] !== this.#asked)) {
      throw new PollError("the answer is a difference to another version");
    }
    const fields = readSingleFields(document);
    let isRounded = fields.invalid.some((name) => isUnsafe(document[name]));
    const onInvalid = (value: unknown): void => {
      isRounded ||= isUnsafe(value);
    };
    const map = <N extends UserMapName>(
      name: N,
      isPartial: boolean,
      listed?: UserValues<unknown>,
    ): ReadMap<UserMapValues[N]> | undefined => {
      const before = this.#maps[name];
      if (!Object.hasOwn(document, name)) return isDifference ? before : undefined;
      const options = { isPartial, listed, onInvalid };
      return readUsers(name, document[name], before ?? NO_USERS, options);
    };
    const storage = map("per_user_storage", isDifference);
    const maps: Maps = {
      per_user_storage: storage,
      per_user_quota: map("per_user_quota", isDifference, storage?.users),
      per_user_detail: map("per_user_detail", isDifference, storage?.users),
      // A difference has these whole.
      near_quota_storage: map("near_quota_storage", false, storage?.users),
      near_quota_limit: map("near_quota_limit", false, storage?.users),
    };
    return { fields, maps, isRounded };
  }

  /** Makes the reading; keeps maps for which there is room, and the version if they are all of the answer. */
  #take({ fields, maps }: Content, version: string | undefined): NodeReading {
    const size = (name: UserMapName): number => maps[name]?.users.size ?? 0;
    const fits = this.#listedUsers.claim(this.#nodeId, Math.max(...LIST_NAMES.map(size)));
    const fitsNear =
      this.#listedUsers.near?.claim(this.#nodeId, Math.max(...NEAR_MAP_NAMES.map(size))) === true;
    const { near_quota_storage: nearStorage, near_quota_limit: nearLimit, ...lists } = maps;
    const near = fitsNear && nearStorage && nearLimit ? { nearStorage, nearLimit } : undefined;
    this.#maps = {
      ...(fits ? lists : {}),
      ...(near === undefined ? {} : { near_quota_storage: nearStorage, near_quota_limit: nearLimit }),
    };
    const invalidMaps = [
      ...LIST_NAMES.filter((name) => !fits || maps[name]?.isValid === false || isMissing(name, maps)),
      ...NEAR_MAP_NAMES.filter((name) => maps[name]?.isValid === false),
    ];
    if (invalidMaps.length === 0 && fitsNear && maps.per_user_storage !== undefined) this.#version = version;
    return {
      ...fields.values,
      usersWithheld: Object.values(maps).every((map) => map === undefined),
      perUserStorage: (this.#maps.per_user_storage ?? NO_USERS).users,
      perUserQuota: (this.#maps.per_user_quota ?? NO_USERS).users,
      perUserDetail: (this.#maps.per_user_detail ?? NO_USERS).users,
      nearQuota: near === undefined ? null : { storage: near.nearStorage.users, limit: near.nearLimit.users },
      invalidFields: [...fields.invalid, ...invalidMaps],
    };
  }
}

/** The two maps of spec 2.7 come together or, guarded by a token, not at all (T8). The third is optional. */
function isMissing(name: UserMapName, maps: Maps): boolean {
  if (maps[name] !== undefined || name === "per_user_detail") return false;
  return Object.values(maps).some((map) => map !== undefined);
}

/** Parses an object. Throws PollError, whose text quotes nothing of the document. */
function parsed(text: string, parser: (text: string) => unknown): Document {
  let document: unknown;
  try {
    document = parser(text);
  } catch {
    throw new PollError(NOT_JSON);
  }
  if (!isObject(document)) throw new PollError(NOT_JSON);
  return document;
}

const NOT_JSON = "the answer is no JSON object";

/** True for an integer that may have been rounded. */
function isUnsafe(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
}

const [COMMA, OPENING_BRACKET, OPENING_BRACE] = [0x2c, 0x5b, 0x7b];

/** Parsing takes many times the memory of `{},{},{},…`; before every value stands one of these bytes. */
function hasTooManyValues(body: Buffer): boolean {
  if (body.length <= DOCUMENT_VALUES_MAX) return false;
  let values = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === COMMA || byte === OPENING_BRACKET || byte === OPENING_BRACE) values++;
  }
  return values > DOCUMENT_VALUES_MAX;
}
