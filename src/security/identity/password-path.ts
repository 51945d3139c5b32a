// The administrator's password as a credential of a call: where it is taken, how often it may be wrong, and what is said of it (T9, T10, D17).
import type { Logger } from "#base/log.ts";
import { isLoopbackAddress } from "#base/network.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { AdminPassword } from "./admin-password.ts";
import type { RateLimiter } from "./rate-limiter.ts";

/** What the path works with. */
export interface PasswordPathDeps {
  /** Undefined where the path is switched off (T9). */
  readonly adminPassword: AdminPassword | undefined;
  readonly passwordFailures: RateLimiter;
  readonly onSecurityEvent: SecurityEventSink;
  readonly log: Logger;
}

/** Where a call comes from. */
export interface PasswordPeer {
  readonly address: string;
  readonly encrypted: boolean;
}

/** Whether a password counts; where it could not from there, why, in words that say what to do. */
export interface PasswordVerdict {
  readonly isRight: boolean;
  readonly obstacle?: string | undefined;
}

/** The path. */
export class PasswordPath {
  readonly #deps: PasswordPathDeps;

  constructor(deps: PasswordPathDeps) {
    this.#deps = deps;
  }

  /** Judges the value of `x-admin-password-hash`; what is undefined is no password. */
  async judge(candidate: string | undefined, peer: PasswordPeer): Promise<PasswordVerdict> {
    const { adminPassword } = this.#deps;
    if (candidate === undefined || adminPassword === undefined) return { isRight: false };
    const obstacle = passwordObstacle(adminPassword, peer);
    if (obstacle !== undefined) return { isRight: false, obstacle };
    return { isRight: await this.#isPassword(adminPassword, candidate, peer.address) };
  }

  async #isPassword(password: AdminPassword, candidate: string, address: string): Promise<boolean> {
    const { passwordFailures, onSecurityEvent, log } = this.#deps;
    // Answered like a wrong one: whoever guesses does not learn that nothing is compared any more.
    if (passwordFailures.waitMs(address) > 0) return false;
    // Taken before the comparison, so that guesses in parallel count as well; a right one gives it back.
    passwordFailures.take(address);
    if (await password.verifyHashHeader(candidate)) {
      passwordFailures.giveBack(address);
      return true;
    }
    onSecurityEvent({ type: "admin_hash_failed", ipSeen: address });
    // Once for each time that the limit is reached, for whoever wonders why the right one is refused.
    const waitMs = passwordFailures.waitMs(address);
    if (waitMs > 0) log.warn("admin_password_limited", { address, retry_after_ms: waitMs });
    return false;
  }
}

/** Why the password path is closed to this peer, in words that say what to do (T9, T10). */
function passwordObstacle(password: AdminPassword, peer: PasswordPeer): string | undefined {
  const isLoopback = isLoopbackAddress(peer.address);
  if (password.isDefault && !isLoopback) {
    return "the built-in default password counts only from this machine: set ADMIN_PASSWORD_HASH to the SHA-256 of another one";
  }
  if (!peer.encrypted && !isLoopback)
    return "an administrator's password is taken only over TLS or from this machine";
  return undefined;
}
