// A door's pages: the page itself, and its interface, which takes the browser's cookie and nothing else.
import { GroveError, isGroveError } from "#base/errors.ts";
import { errorText, type Logger } from "#base/log.ts";
import type { DoorPages, PageExchange } from "#door/http/pages.ts";
import { Places } from "#door/http/places.ts";
import { cookieOf, setCookie } from "#door/session/cookies.ts";
import type { KnownSessions } from "#door/session/known-sessions.ts";
import { requireOwnChange, requireOwnPage } from "#door/session/own-page.ts";
import type { BrowserSignIn } from "#door/session/sign-in.ts";
import { davRefusalOf } from "#door/tree/refusals.ts";
import { DAV_STATUS, DavRefusal, retryHeaders } from "#door/webdav/status-table.ts";
import type { FileProblem, SignedIn } from "#wire/webapi/files.ts";
import * as access from "./access.ts";
import { sendArchive } from "./archive.ts";
import type { BrowserPeople, BrowserPerson } from "./browser-person.ts";
import { type BuiltFiles, readBuiltFiles, sendBuiltFile } from "./built-files.ts";
import { type PageCall, sendJson } from "./call.ts";
import * as changes from "./changes.ts";
import { sendContent, takeContent } from "./content.ts";
import {
  ARCHIVES_PER_USER,
  PAGE_REQUESTS,
  PAGE_REQUESTS_PER_USER,
  PAGE_WAITING,
  PAGE_WAITING_PER_USER,
  SEARCHES_PER_USER,
} from "./limits.ts";
import * as looks from "./looks.ts";
import { search } from "./search.ts";
import { answerUpload, UPLOADS_PATH } from "./uploads.ts";

/** Parts of the pages. */
export interface PagesDeps {
  readonly signIn: BrowserSignIn;
  readonly people: BrowserPeople;
  readonly sessions: KnownSessions;
  readonly publicUrl: string;
  readonly log: Logger;
}

const OLD_SIGN_IN = "this needs a sign-in of the last ten minutes: sign in again";

type Answer = (call: PageCall) => Promise<unknown>;

/** Calls that answer with JSON. */
const JSON_CALLS: Readonly<Record<string, Answer>> = {
  "GET /api/list": looks.list,
  "GET /api/stat": looks.stat,
  "GET /api/quota": looks.quota,
  "GET /api/shared": looks.sharedPlaces,
  "GET /api/trash": looks.trash,
  "POST /api/folder": changes.makeFolder,
  "POST /api/move": changes.move,
  "POST /api/copy": changes.copy,
  "POST /api/trash": changes.toTrash,
  "POST /api/restore": changes.restore,
  "POST /api/purge": changes.purge,
  "POST /api/share": changes.share,
  "POST /api/unshare": changes.unshare,
  "GET /api/links": access.links,
  "POST /api/links": access.makeLink,
  "POST /api/links/revoke": access.revokeLink,
  "GET /api/app-passwords": access.appPasswords,
  "POST /api/app-passwords": access.makeAppPassword,
  "POST /api/app-passwords/revoke": access.revokeAppPassword,
  "GET /api/sessions": access.sessions,
  "POST /api/sessions/end": access.endSessions,
  "PUT /api/content": takeContent,
};

/** Looks that answer in other ways. */
const OTHER_LOOKS = ["GET /api/content", "GET /api/zip", "GET /api/search", "GET /api/me"] as const;

/** Reads the built page. */
export async function openPages(deps: PagesDeps): Promise<DoorPages> {
  return new Pages(deps, await readBuiltFiles());
}

class Pages implements DoorPages {
  readonly #deps: PagesDeps;
  readonly #files: BuiltFiles;
  readonly #requests = new Places({
    total: PAGE_REQUESTS,
    perParty: PAGE_REQUESTS_PER_USER,
    waiting: PAGE_WAITING,
    waitingPerParty: PAGE_WAITING_PER_USER,
  });
  readonly #archives = new Places({
    total: PAGE_REQUESTS,
    perParty: ARCHIVES_PER_USER,
    waiting: PAGE_WAITING,
    waitingPerParty: PAGE_REQUESTS_PER_USER,
  });

  readonly #searches = new Places({
    total: PAGE_REQUESTS,
    perParty: SEARCHES_PER_USER,
    waiting: PAGE_WAITING,
    waitingPerParty: PAGE_REQUESTS_PER_USER,
  });

  constructor(deps: PagesDeps, files: BuiltFiles) {
    this.#deps = deps;
    this.#files = files;
  }

  async answer(exchange: PageExchange): Promise<boolean> {
    if (exchange.path.startsWith("/api/")) {
      await this.#answerCall(exchange).catch((error: unknown) => this.#refuse(exchange, error));
      return true;
    }
    if ("service-worker" in exchange.headers) throw new DavRefusal(403, "no worker is served here");
    return (await this.#deps.signIn.answer(exchange)) || sendBuiltFile(exchange, this.#files);
  }

  async #answerCall(exchange: PageExchange): Promise<void> {
    if (isLookAt(exchange)) requireOwnPage(exchange);
    else requireOwnChange(exchange);
    const person = await this.#personOf(exchange);
    exchange.whenGone(() => person.release());
    if (exchange.destroyed) return;
    exchange.prove();
    await this.#requests.run(person.username, exchange, () => this.#answerPerson(exchange, person));
  }

  async #answerPerson(exchange: PageExchange, person: BrowserPerson): Promise<void> {
    const { method, path } = exchange;
    const { username } = person;
    const isLook = isLookAt(exchange);
    const call = { exchange, person, publicUrl: this.#deps.publicUrl };
    if (path === UPLOADS_PATH || path.startsWith(`${UPLOADS_PATH}/`)) return await answerUpload(call);
    if (isLook && path === "/api/content") return await sendContent(call);
    if (isLook && path === "/api/zip") {
      return await this.#archives.run(username, exchange, () => sendArchive(call));
    }
    if (isLook && path === "/api/search") {
      return sendJson(exchange, await this.#searches.run(username, exchange, () => search(call)));
    }
    if (isLook && path === "/api/me") return sendJson(exchange, this.#meOf(person));
    const answer = JSON_CALLS[`${method === "HEAD" ? "GET" : method} ${path}`];
    if (answer === undefined) throw noSuchCall(path);
    sendJson(exchange, await answer(call));
  }

  #meOf({ username, recentUntilMs }: BrowserPerson): SignedIn {
    const { publicUrl } = this.#deps;
    return { username, recent_until_ms: recentUntilMs, webdav_url: `${publicUrl}/dav/` };
  }

  async #personOf(exchange: PageExchange): Promise<BrowserPerson> {
    const secret = cookieOf(exchange, "session");
    if (secret === undefined) throw new GroveError("TOKEN_REJECTED", "sign in");
    const { people, sessions } = this.#deps;
    const { address } = exchange.facts;
    try {
      return await sessions.judge(secret, address, () => people.bySession(secret, address));
    } catch (error) {
      if (isGroveError(error, "TOKEN_REJECTED"))
        exchange.setHeader("set-cookie", setCookie(exchange, "session", "", 0));
      throw error;
    }
  }

  #refuse(exchange: PageExchange, error: unknown): void {
    if (exchange.destroyed) return;
    if (exchange.headersSent) {
      // Browsers tell of a cut download, and not why; the log does.
      this.#deps.log.warn("answer_cut", { path: exchange.path, error: errorText(error) });
      return exchange.destroy();
    }
    const { status, ...problem } = this.#problemOf(error);
    for (const [name, seconds] of Object.entries(retryHeaders(status, error)))
      exchange.setHeader(name, seconds);
    // A browser would save the refusal under the file's name.
    exchange.removeHeader("content-disposition");
    if (status === 405) exchange.setHeader("allow", methodsAt(exchange.path).join(", "));
    sendJson(exchange, problem, status);
  }

  #problemOf(error: unknown): FileProblem & { readonly status: number } {
    const found = davRefusalOf(error) ?? error;
    if (found instanceof DavRefusal)
      return { status: found.status, error: codeOf(found.status), message: found.message };
    if (isGroveError(found)) {
      // The servers' words for a sign-in that is too old: the page offers to sign in again.
      if (found.code === "NOT_OWNER" && found.message.includes("sign-in of the last ten minutes"))
        return { status: 403, error: "SIGN_IN_AGAIN", message: OLD_SIGN_IN };
      const isTaken = found.code === "PATH_EXISTS" || found.code === "IS_DIRECTORY";
      const status = isTaken ? 409 : DAV_STATUS[found.code].status;
      return status === 401
        ? { status, error: "SIGN_IN", message: "your sign-in has ended: sign in again" }
        : { status, error: found.code, message: found.message };
    }
    this.#deps.log.error("page_failed", { error: errorText(error) });
    return { status: 500, error: "INTERNAL", message: "an error of the door; its log tells more" };
  }
}

function isLookAt({ method }: PageExchange): boolean {
  return method === "GET" || method === "HEAD";
}

function noSuchCall(path: string): DavRefusal {
  const methods = methodsAt(path);
  return methods.length === 0
    ? new DavRefusal(404, "there is no such call")
    : new DavRefusal(405, `this address takes ${methods.join(", ")}`);
}

/** The methods of an address, which a 405 has to name (RFC 9110, section 15.5.6); none where there is no call. */
function methodsAt(path: string): readonly string[] {
  if (path === UPLOADS_PATH) return ["POST"];
  if (path.startsWith(`${UPLOADS_PATH}/`)) return ["HEAD", "PATCH", "DELETE"];
  const calls = [...Object.keys(JSON_CALLS), ...OTHER_LOOKS].map((call) => call.split(" "));
  const methods = calls.filter(([, at]) => at === path).map(([method = ""]) => method);
  return methods.includes("GET") ? ["HEAD", ...methods] : methods;
}

function codeOf(status: number): string {
  return status === 401 ? "SIGN_IN" : status === 503 ? "AWAY" : "REFUSED";
}
