// How large a request message of each method may be (D17), and which calls are dear: most are names and numbers.
import { RECEIVE_MESSAGE_MAX_BYTES } from "#base/limits.ts";
import { type ReceiveLimits, SMALL_REQUEST } from "#wire/framing/limits.ts";

/** What methods take that are not named below: a path has at most 4,096 bytes. */
export const USUAL_REQUEST: ReceiveLimits = { receiveMessageBytes: 64 * 1_024, receiveFields: 256 };

/** What carries content: the operation itself says what is too much of it. */
const CONTENT: ReceiveLimits = { receiveMessageBytes: RECEIVE_MESSAGE_MAX_BYTES, receiveFields: 256 };

/** A decision about a user with all that it hands over, each with its reason. */
const USER_STATE: ReceiveLimits = { ...SMALL_REQUEST, receiveMessageBytes: 8 * 1_024 };

/** What has a few paths, and comes from callers who have proven nothing yet: an administrator of the trash brings a password. */
const WITH_PATHS: ReceiveLimits = { receiveMessageBytes: 16 * 1_024, receiveFields: 64 };

/** The methods that take more, or that anybody may call. */
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
  purgeTrash: { receiveMessageBytes: 1_048_576, receiveFields: 50_000 },
} as const;

/** What calls count that take the loop for longer than most: an explanation walks the path, which may have 2,000 levels. */
export const CALL_COSTS = { explain: 8 } as const;
