// MKCOL, DELETE, COPY, MOVE.
import { GroveError, isGroveError } from "#base/errors.ts";
import { type DavExchange, versionIn } from "./exchange.ts";
import { readDepth, readOverwrite } from "./request-headers.ts";
import type { ChangeTerms, DavResource, DavTarget } from "./resource.ts";
import { DavRefusal } from "./status-table.ts";

/** Answers a MKCOL. */
export async function answerMkcol(exchange: DavExchange): Promise<void> {
  if (exchange.hasBody) throw new DavRefusal(415, "a MKCOL has no body");
  if ((await exchange.tree.look(exchange.path)) !== undefined) throw nameTaken();
  await checkParent(exchange, exchange.path);
  exchange.checkVersion(undefined);
  try {
    await exchange.tree.makeCollection(exchange.path, exchange.tokens);
  } catch (error) {
    // What came since the look is answered as if it had been there (RFC 4918, section 9.3.1).
    throw isGroveError(error, "PATH_EXISTS") ? nameTaken() : error;
  }
  exchange.replyStatus(201);
}

/** With a condition too: one counts only where the answer without it were another (RFC 9110, section 13.2.1). */
function nameTaken(): DavRefusal {
  return new DavRefusal(405, "something of that name exists");
}

/** Answers a DELETE. */
export async function answerDelete(exchange: DavExchange): Promise<void> {
  const resource = await exchange.resource();
  if (resource.isCollection && readDepth(exchange.header("depth"), "infinity") !== "infinity") {
    throw new GroveError("BAD_ARGUMENT", 'a DELETE of a collection has Depth "infinity"');
  }
  if (resource.path.length === 0) throw new DavRefusal(403, "the top cannot be deleted");
  await exchange.tree.remove(exchange.path, termsOf(exchange, resource));
  exchange.replyStatus(204);
}

/** Answers a COPY. */
export async function answerCopy(exchange: DavExchange): Promise<void> {
  const depth = readDepth(exchange.header("depth"), "infinity");
  if (depth === "1") throw new GroveError("BAD_ARGUMENT", 'a COPY has Depth "0" or "infinity"');
  await transfer(exchange, (target, terms) =>
    exchange.tree.copy(exchange.path, target, depth === "infinity", terms),
  );
}

/** Answers a MOVE. */
export async function answerMove(exchange: DavExchange): Promise<void> {
  const resource = await exchange.resource();
  if (resource.isCollection && readDepth(exchange.header("depth"), "infinity") !== "infinity") {
    throw new GroveError("BAD_ARGUMENT", 'a MOVE of a collection has Depth "infinity"');
  }
  await transfer(exchange, (target, terms) => exchange.tree.move(exchange.path, target, terms));
}

async function transfer(
  exchange: DavExchange,
  act: (target: DavTarget, terms: ChangeTerms) => Promise<void>,
): Promise<void> {
  const mayReplace = readOverwrite(exchange.header("overwrite"));
  const to = exchange.destination();
  const resource = await exchange.resource();
  const { path } = resource;
  if (isWithin(to, path) || isWithin(path, to)) {
    throw new DavRefusal(403, "source and destination lie within one another");
  }
  const replaced = await exchange.tree.look(to);
  if (replaced !== undefined && !mayReplace) throw new GroveError("PATH_EXISTS", "the destination exists");
  await checkParent(exchange, to);
  const terms = termsOf(exchange, resource);
  const judged = exchange.judgedVersion(to, replaced);
  await act({ to, mayReplace: mayReplace && judged !== "none", ifMatch: versionIn(judged) }, terms);
  exchange.replyStatus(replaced === undefined ? 201 : 204);
}

/** Throws 412 where the conditions do not hold of what is there; the change itself is held to that version. */
function termsOf(exchange: DavExchange, resource: DavResource): ChangeTerms {
  exchange.checkVersion(resource);
  const judged = exchange.judgedVersion(exchange.path, resource);
  return { tokens: exchange.tokens, ifMatch: versionIn(judged) };
}

/** Throws 409 where the collection that something is to be made in does not exist. */
export async function checkParent(exchange: DavExchange, path: readonly string[]): Promise<void> {
  if (path.length === 0) throw new DavRefusal(403, "the top cannot be replaced");
  const parent = await exchange.tree.look(path.slice(0, -1));
  if (parent?.isCollection !== true) throw new DavRefusal(409, "the folder above does not exist");
}

function isWithin(path: readonly string[], folder: readonly string[]): boolean {
  return folder.length <= path.length && folder.every((name, index) => path[index] === name);
}
