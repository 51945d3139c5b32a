// The administrator's configured password: a SHA-256, an Argon2 string over one, or the built-in default
// (spec 5.5, 5.8).
import { argon2, hash } from "node:crypto";
import { constantTimeEqual } from "#base/constant-time.ts";
import { GroveError } from "#base/errors.ts";

/** Argon2 verifications at once; each takes tens of milliseconds of a core and tens of megabytes. */
const ARGON2_PARALLEL = 2;
/** Argon2 verifications that may wait; more are answered RATE_LIMITED. */
const ARGON2_WAITING = 32;
/** Largest Argon2 memory in a configured password hash: 1 GiB in KiB. */
const ARGON2_MEMORY_MAX_KIB = 1_048_576;

/** The settings of the password (spec 5.9). */
export interface AdminPasswordSettings {
  /** 64 hex characters, or `$argon2id$…` over the lower-case SHA-256 hex of the password (decision T11). */
  readonly ADMIN_PASSWORD_HASH?: string | undefined;
  /** The password itself; used when there is no hash. */
  readonly ADMIN_PASSWORD?: string | undefined;
}

/** Verifies the administrator's password. */
export interface AdminPassword {
  /**
   * True when the value of `x-admin-password-hash` (SHA-256 of the password, 64 hex characters, any case) is
   * right; compared in constant time. Throws RATE_LIMITED when too many Argon2 verifications wait.
   */
  verifyHashHeader(candidateHash: string): Promise<boolean> | boolean;
  /**
   * True while the built-in default applies: then only loopback peers may use the password path
   * (decision T10).
   */
  readonly isDefault: boolean;
}

/** The password of the built-in default hash (decision T10). */
const DEFAULT_PASSWORD = "admin";
const HEX_HASH = /^[0-9a-f]{64}$/;

/** The lower-case SHA-256 hex of a password, as in the header and in ADMIN_PASSWORD_HASH (spec 5.8.1). */
export function adminPasswordHash(password: string): string {
  return hash("sha256", password, "hex");
}

/** Reads the configured password. Throws BAD_ARGUMENT when ADMIN_PASSWORD_HASH has neither form. */
export function createAdminPassword(settings: AdminPasswordSettings): AdminPassword {
  const configured = settings.ADMIN_PASSWORD_HASH?.trim() ?? "";
  if (configured.startsWith("$")) return createArgon2Password(configured);
  const expected = hexHash(configured, settings.ADMIN_PASSWORD ?? "");
  return {
    isDefault: constantTimeEqual(expected, adminPasswordHash(DEFAULT_PASSWORD)),
    verifyHashHeader(candidateHash) {
      const candidate = candidateHash.toLowerCase();
      const isEqual = constantTimeEqual(candidate, expected);
      return isEqual && HEX_HASH.test(candidate);
    },
  };
}

function hexHash(configured: string, password: string): string {
  if (configured === "") return adminPasswordHash(password === "" ? DEFAULT_PASSWORD : password);
  const expected = configured.toLowerCase();
  if (HEX_HASH.test(expected)) return expected;
  throw new GroveError(
    "BAD_ARGUMENT",
    "ADMIN_PASSWORD_HASH must be 64 hex characters (SHA-256 of the password) or an $argon2id$ string over them",
  );
}

interface Argon2Hash {
  readonly memory: number;
  readonly passes: number;
  readonly parallelism: number;
  readonly nonce: Buffer;
  readonly tag: Buffer;
}

const PHC_FORM =
  /^\$argon2id\$v=19\$m=(\d{1,9}),t=(\d{1,4}),p=(\d{1,3})\$([A-Za-z0-9+/]{11,128})={0,2}\$([A-Za-z0-9+/]{16,172})={0,2}$/;
const PASSES_MAX = 64;
const PARALLELISM_MAX = 16;

function createArgon2Password(text: string): AdminPassword {
  const expected = parseArgon2(text);
  let running = 0;
  const waiting: (() => void)[] = [];
  const verify = async (candidate: string): Promise<boolean> => {
    if (running < ARGON2_PARALLEL) running++;
    else {
      if (waiting.length >= ARGON2_WAITING) {
        throw new GroveError("RATE_LIMITED", "too many password checks at once; try again in a moment");
      }
      // A finished verification passes its place on, so the count stays.
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    try {
      return constantTimeEqual(await deriveTag(candidate, expected), expected.tag);
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
  return {
    isDefault: false,
    verifyHashHeader(candidateHash) {
      const candidate = candidateHash.toLowerCase();
      return HEX_HASH.test(candidate) ? verify(candidate) : false;
    },
  };
}

function parseArgon2(text: string): Argon2Hash {
  const [, memory, passes, parallelism, nonce = "", tag = ""] = PHC_FORM.exec(text) ?? [];
  const parsed = {
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
    nonce: Buffer.from(nonce, "base64"),
    tag: Buffer.from(tag, "base64"),
  };
  const isSound =
    parsed.parallelism >= 1 &&
    parsed.parallelism <= PARALLELISM_MAX &&
    parsed.memory >= 8 * parsed.parallelism &&
    parsed.memory <= ARGON2_MEMORY_MAX_KIB &&
    parsed.passes >= 1 &&
    parsed.passes <= PASSES_MAX &&
    parsed.nonce.length >= 8;
  if (isSound) return parsed;
  throw new GroveError(
    "BAD_ARGUMENT",
    "ADMIN_PASSWORD_HASH begins like an Argon2 string but is no $argon2id$v=19$m=…,t=…,p=…$salt$hash within limits",
  );
}

/** Runs in the thread pool, off the event loop. */
function deriveTag(message: string, expected: Argon2Hash): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  const { memory, passes, parallelism, nonce, tag } = expected;
  const parameters = { message, nonce, memory, passes, parallelism, tagLength: tag.length };
  argon2("argon2id", parameters, (error, derived) => {
    if (error === null) resolve(derived);
    else reject(error);
  });
  return promise;
}
