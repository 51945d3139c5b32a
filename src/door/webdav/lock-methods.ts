// LOCK and UNLOCK.
import { GroveError, isGroveError } from "#base/errors.ts";
import { hasConditions } from "./conditions.ts";
import type { DavExchange } from "./exchange.ts";
import { XML_TYPE } from "./find-method.ts";
import { activeLock } from "./live-properties.ts";
import { readLockInfo } from "./request-bodies.ts";
import { readDepth, readLockToken, readTimeout } from "./request-headers.ts";
import type { DavLock, DavTree, LockWish } from "./resource.ts";
import { DavRefusal } from "./status-table.ts";
import { XML_MAX_BYTES } from "./xml-body.ts";

/** Answers a LOCK: a new lock, or the refresh of one where the body is empty. */
export async function answerLock(exchange: DavExchange): Promise<void> {
  const depth = readDepth(exchange.header("depth"), "infinity");
  const seconds = readTimeout(exchange.header("timeout"));
  const body = await exchange.body(XML_MAX_BYTES);
  if (body.length === 0) {
    replyLock(exchange, 200, await refreshed(exchange, seconds));
    return;
  }
  if (depth === "1") throw new GroveError("BAD_ARGUMENT", 'a LOCK has Depth "0" or "infinity"');
  const wish = { ...readLockInfo(body), isDeep: depth === "infinity", seconds };
  if (hasConditions(exchange.request.headers)) {
    exchange.checkVersion(await exchange.tree.look(exchange.path));
  }
  const { lock, hasMadeFile } = await taken(exchange, wish);
  exchange.response.setHeader("lock-token", `<${lock.token}>`);
  replyLock(exchange, hasMadeFile ? 201 : 200, lock);
}

/** Takes a lock, with the statuses of RFC 4918, section 9.10.6. */
async function taken(exchange: DavExchange, wish: LockWish): ReturnType<DavTree["lock"]> {
  try {
    return await exchange.tree.lock(exchange.path, wish, exchange.tokens);
  } catch (error) {
    if (isGroveError(error, "NO_SUCH_PATH")) throw new DavRefusal(409, "the folder above does not exist");
    if (isGroveError(error, "LOCKED")) throw new DavRefusal(423, error.message, "no-conflicting-lock");
    throw error;
  }
}

/** Answers an UNLOCK. */
export async function answerUnlock(exchange: DavExchange): Promise<void> {
  const token = readLockToken(exchange.header("lock-token"));
  await exchange.tree.unlock(exchange.path, token);
  exchange.replyStatus(204);
}

/** A refresh is a conditional request: a lock that has ended fails the condition (RFC 4918, section 9.10.2). */
async function refreshed(exchange: DavExchange, seconds: number): Promise<DavLock> {
  try {
    return await exchange.tree.refreshLock(exchange.path, refreshedToken(exchange), seconds);
  } catch (error) {
    if (!isGroveError(error, "NO_SUCH_LOCK")) throw error;
    throw new DavRefusal(412, error.message, "lock-token-matches-request-uri");
  }
}

function refreshedToken(exchange: DavExchange): string {
  const [token, more] = exchange.tokens;
  if (token === undefined || more !== undefined) {
    throw new DavRefusal(412, "a refresh names its one lock in the If header", "lock-token-submitted");
  }
  return token;
}

function replyLock(exchange: DavExchange, status: number, lock: DavLock): void {
  const active = activeLock(lock, (path, isCollection) => exchange.hrefOf(path, isCollection));
  const discovery = `<D:lockdiscovery>${active}</D:lockdiscovery>`;
  const xml = `<?xml version="1.0" encoding="utf-8"?>\n<D:prop xmlns:D="DAV:">${discovery}</D:prop>\n`;
  exchange.replyText(status, XML_TYPE, xml);
}
