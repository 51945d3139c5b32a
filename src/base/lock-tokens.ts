// How a call shows that its caller holds locks.

/** Metadata with the tokens of locks that a change may pass, separated by commas. */
export const LOCK_TOKENS_HEADER = "svc-lock-tokens";

/** Tokens that count of those. */
export const LOCK_TOKENS_MAX = 32;
