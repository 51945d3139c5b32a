// Maximum request sizes of each method (D17), and the costs of expensive calls: most are names and numbers.
import { RECEIVE_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import { type ReceiveLimits, SMALL_REQUEST } from "#wire/framing/limits.ts";

/** Default of all methods that are not named below: a path has at most 4,096 bytes. */
export const USUAL_REQUEST: ReceiveLimits = { receiveMessageBytes: 64 * 1_024, receiveFields: 256 };

/** Requests with content: the operation itself refuses too much of it. */
const CONTENT: ReceiveLimits = { receiveMessageBytes: RECEIVE_MESSAGE_MAX_BYTES, receiveFields: 256 };

/** A decision about a user with all its hand-overs, each with a reason. */
const USER_STATE: ReceiveLimits = { ...SMALL_REQUEST, receiveMessageBytes: 8 * 1_024 };

/** A few paths from an unproven caller: an administrator of the trash brings a password. */
const WITH_PATHS: ReceiveLimits = { receiveMessageBytes: 16 * 1_024, receiveFields: 64 };

/** The receipts of a round of rows: 512 buckets with six fields each. */
const RECEIPTS: ReceiveLimits = { receiveMessageBytes: 262_144, receiveFields: 8_192 };

/** The methods that take more, or that unproven callers may call. */
export const REQUEST_LIMITS = {
  registerClient: SMALL_REQUEST,
  setQuota: SMALL_REQUEST,
  setUserState: USER_STATE,
  listUserStates: SMALL_REQUEST,
  showTrash: WITH_PATHS,
  restoreFile: WITH_PATHS,
  createFile: CONTENT,
  writeFile: CONTENT,
  uploadFile: CONTENT,
  changeProperties: { receiveMessageBytes: 192 * 1_024, receiveFields: 4_096 },
  purgeTrash: { receiveMessageBytes: 1_048_576, receiveFields: 50_000 },
} as const;

/** Costs of calls that block the event loop longest: an explanation walks a path of up to 2,000 levels. */
export const CALL_COSTS = { explain: 8 } as const;

/** Of the service that gives a moving root to its next node. */
export const SOURCE_REQUESTS = { requests: { pullRows: RECEIPTS }, otherRequests: USUAL_REQUEST } as const;
