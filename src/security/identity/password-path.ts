// The administrator's password as a credential of a call: where it is accepted, the limit of failures, and
// the log (T9, T10, D17).
import type { Logger } from "#base/log.ts";
import { isLoopbackAddress, networkOf } from "#base/network.ts";
import type { SecurityEventSink } from "#base/security-event.ts";
import type { SlidingWindow } from "#base/sliding-window.ts";
import type { AdminPassword } from "./admin-password.ts";

/** Dependencies of the path. */
export interface PasswordPathDeps {
  /** Undefined where the path is switched off (T9). */
  readonly adminPassword: AdminPassword | undefined;
  readonly passwordFailures: SlidingWindow;
  readonly onSecurityEvent: SecurityEventSink;
  readonly log: Logger;
}

/** Origin of a call. */
export interface PasswordPeer {
  readonly address: string;
  readonly encrypted: boolean;
}

/** Whether a password is right, and advice when it is not accepted from this peer. */
export interface PasswordVerdict {
  readonly isRight: boolean;
  readonly obstacle?: string | undefined;
}

/** Judges passwords of calls. */
export class PasswordPath {
  readonly #deps: PasswordPathDeps;
  /** The end of all comparisons under way, by network. */
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(deps: PasswordPathDeps) {
    this.#deps = deps;
  }

  /** Judges the value of `x-admin-password-hash`; undefined means no password. */
  async judge(candidate: string | undefined, peer: PasswordPeer): Promise<PasswordVerdict> {
    const { adminPassword } = this.#deps;
    if (candidate === undefined || adminPassword === undefined) return { isRight: false };
    const obstacle = passwordObstacle(adminPassword, peer);
    if (obstacle !== undefined) return { isRight: false, obstacle };
    return { isRight: await this.#isPassword(adminPassword, candidate, peer.address) };
  }

  async #isPassword(password: AdminPassword, candidate: string, address: string): Promise<boolean> {
    const { passwordFailures, onSecurityEvent, log } = this.#deps;
    const network = networkOf(address);
    while (passwordFailures.waitMs(address) > 0) {
      const underWay = this.#underWay.get(network);
      // Answered like a wrong password: the caller does not learn that the comparison has stopped.
      if (underWay === undefined) return false;
      // Those that are right take their count back.
      await underWay;
    }
    // Counted before the comparison, so that parallel guesses count as well; only a wrong password stays counted.
    const isRight = this.#counted(address, () => password.verifyHashHeader(candidate));
    const underWay = Promise.allSettled([this.#underWay.get(network), isRight]).then(() => {
      if (this.#underWay.get(network) === underWay) this.#underWay.delete(network);
    });
    this.#underWay.set(network, underWay);
    if (await isRight) return true;
    onSecurityEvent({ type: "admin_hash_failed", ipSeen: address });
    // Logged once each time the limit is reached, to explain the refusal of a right password.
    const waitMs = passwordFailures.waitMs(address);
    if (waitMs > 0) log.warn("admin_password_limited", { address, retry_after_ms: waitMs });
    return false;
  }

  async #counted(address: string, compare: () => Promise<boolean> | boolean): Promise<boolean> {
    const { passwordFailures } = this.#deps;
    passwordFailures.take(address);
    let isWrong = false;
    try {
      isWrong = !(await compare());
      return !isWrong;
    } finally {
      if (!isWrong) passwordFailures.giveBack(address);
    }
  }
}

/** Says why the password path is closed to this peer, with advice (T9, T10). */
function passwordObstacle(password: AdminPassword, peer: PasswordPeer): string | undefined {
  const isLoopback = isLoopbackAddress(peer.address);
  if (password.isDefault && !isLoopback) {
    return "the built-in default password counts only from this machine: set ADMIN_PASSWORD_HASH to the SHA-256 of another one";
  }
  if (!peer.encrypted && !isLoopback)
    return "an administrator's password is taken only over TLS or from this machine";
  return undefined;
}
