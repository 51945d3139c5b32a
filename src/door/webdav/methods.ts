// Every method of /dav/, and how its refusals are answered.
import { isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import { DavExchange, type DavPlace, type HttpRequest, type HttpResponse } from "./exchange.ts";
import { answerGet, answerPut } from "./file-methods.ts";
import { answerPropfind, XML_TYPE } from "./find-method.ts";
import { answerLock, answerUnlock } from "./lock-methods.ts";
import { answerProppatch } from "./property-method.ts";
import type { DavTree } from "./resource.ts";
import { DAV_STATUS, DavRefusal, refusalHeaders } from "./status-table.ts";
import { answerCopy, answerDelete, answerMkcol, answerMove } from "./tree-methods.ts";
import { escapedXml } from "./xml-text.ts";

type Method = (exchange: DavExchange) => Promise<void>;

const METHODS: Readonly<Record<string, Method>> = {
  OPTIONS: async (exchange) => {
    exchange.response.setHeader("content-length", 0);
    exchange.replyStatus(200);
  },
  GET: answerGet,
  HEAD: answerGet,
  PUT: answerPut,
  DELETE: answerDelete,
  MKCOL: answerMkcol,
  COPY: answerCopy,
  MOVE: answerMove,
  PROPFIND: answerPropfind,
  PROPPATCH: answerProppatch,
  LOCK: answerLock,
  UNLOCK: answerUnlock,
};

const ALLOW = Object.keys(METHODS).join(", ");

/** Preconditions whose elements hold the address of a lock (RFC 4918, section 16). */
const LOCK_CONDITIONS: ReadonlySet<string> = new Set(["lock-token-submitted", "no-conflicting-lock"]);

/** One request at /dav/ from somebody who has signed in. Never throws. */
export async function answerDav(
  request: HttpRequest,
  response: HttpResponse,
  options: {
    readonly tree: DavTree;
    readonly place: DavPlace;
    readonly awaitsContinue: boolean;
    readonly log: Logger;
  },
): Promise<void> {
  response.setHeader("dav", "1, 2, 3");
  response.setHeader("ms-author-via", "DAV");
  response.setHeader("allow", ALLOW);
  let exchange: DavExchange | undefined;
  try {
    exchange = new DavExchange(request, response, options);
    const name = request.method ?? "";
    // HTTP/2 takes any word as a method, "constructor" too.
    const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
    if (method === undefined) throw new DavRefusal(405, "there is no such method here");
    await exchange.checkIf();
    await method(exchange);
  } catch (error) {
    await replyError(error, exchange, response, options.log);
  }
}

async function replyError(
  error: unknown,
  exchange: DavExchange | undefined,
  response: HttpResponse,
  log: Logger,
): Promise<void> {
  const { status, element, text } = answerOf(error);
  if (status === 500) log.error("dav_failed", { error: errorText(error) });
  if (response.headersSent) {
    // Half an answer must not look like a whole one.
    response.destroy();
    return;
  }
  for (const [name, value] of Object.entries(refusalHeaders(status, error))) response.setHeader(name, value);
  const condition = await conditionXml(element, exchange);
  const words = `<G:message xmlns:G="urn:grove:dav">${escapedXml(text)}</G:message>`;
  const xml = `<?xml version="1.0" encoding="utf-8"?>\n<D:error xmlns:D="DAV:">${condition}${words}</D:error>\n`;
  if (exchange === undefined) {
    response.statusCode = status;
    response.setHeader("connection", "close");
    response.setHeader("content-type", XML_TYPE);
    response.end(xml);
    return;
  }
  exchange.replyText(status, XML_TYPE, xml);
}

/** The element of a precondition; those of locks name one that stands in the way, or are left out. */
async function conditionXml(element: string | undefined, exchange: DavExchange | undefined): Promise<string> {
  if (element === undefined) return "";
  if (exchange === undefined || !LOCK_CONDITIONS.has(element)) return `<D:${element}/>`;
  const root = await lockInTheWay(exchange).catch(() => undefined);
  if (root === undefined) return "";
  return `<D:${element}><D:href>${exchange.hrefOf(root, false)}</D:href></D:${element}>`;
}

/** Names of what is locked by a token that the request lacks; undefined where the lock lies further down. */
async function lockInTheWay(exchange: DavExchange): Promise<readonly string[] | undefined> {
  const hasTarget = exchange.header("destination") !== undefined;
  const paths = hasTarget ? [exchange.path, exchange.destination()] : [exchange.path];
  for (const path of paths.flatMap((one) => [one, one.slice(0, -1)])) {
    const locks = (await exchange.tree.look(path, true))?.locks ?? [];
    const other = locks.find(({ token }) => !exchange.tokens.includes(token));
    if (other !== undefined) return other.root;
  }
  return undefined;
}

function answerOf(error: unknown): { status: number; element: string | undefined; text: string } {
  if (error instanceof DavRefusal)
    return { status: error.status, element: error.element, text: error.message };
  if (isGroveError(error)) {
    const { status, element } = DAV_STATUS[error.code];
    return { status, element, text: error.message };
  }
  return { status: 500, element: undefined, text: "an error of the door; its log tells more" };
}
