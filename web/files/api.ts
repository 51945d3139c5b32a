// Calls to the door that serves this page.
import type {
  AppPasswordFacts,
  FoundNames,
  LinkFacts,
  MadeAppPassword,
  MadeLink,
  SessionFacts,
} from "#wire/webapi/file-access.ts";
import type {
  FileFacts,
  FileList,
  FileProblem,
  QuotaFacts,
  SharedPlace,
  SignedIn,
  TrashList,
} from "#wire/webapi/files.ts";
import { noteDoorDate } from "./door-clock.ts";

/** What every call about a resumable upload says. */
export const TUS = { "tus-resumable": "1.0.0" } as const;

/** Of a door that is away, and of servers before one; 0 stands for no answer. */
const PASSING_STATUSES: ReadonlySet<number> = new Set([0, 429, 502, 503, 504]);

/** A refusal of the door, or none of its answers at all (status 0). */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly status: number;
  /** Such as QUOTA_EXCEEDED, SIGN_IN, or NETWORK. */
  readonly code: string;

  constructor(status: number, { error, message }: FileProblem) {
    super(message);
    this.status = status;
    this.code = error;
  }

  /** True where the same call may well be answered in a moment. */
  get isPassing(): boolean {
    return PASSING_STATUSES.has(this.status);
  }
}

/** What a link is to be; 0 for no limit. */
export interface LinkWish extends Place {
  readonly drop: boolean;
  readonly password: string;
  readonly ends_ms: number;
  readonly max_downloads: number;
  readonly max_bytes: number;
  readonly max_files: number;
}

/** What an app password is to be; an empty folder for everything, 0 for no end. */
export interface AppPasswordWish {
  readonly name: string;
  readonly read_only: boolean;
  readonly folder: string;
  readonly ends_ms: number;
}

/** A place in a root; an empty root is one's own. */
export interface Place {
  readonly root: string;
  readonly path: string;
}

/** The refusal in an answer of the door. */
export function refusalOf(status: number, text: string): Refusal {
  if (status === 0)
    return new Refusal(0, { error: "NETWORK", message: "The door does not answer. Is the network there?" });
  const problem = problemIn(text);
  if (problem !== undefined) return new Refusal(status, problem);
  // A server before the door answers with a page of its own, which says nothing to people.
  const isPlain = /^[^<{}]{1,500}$/u.test(text) && text.trim() !== "";
  const message = isPlain ? text.trim() : `The door, or a server before it, answered ${status}.`;
  return new Refusal(status, { error: "REFUSED", message });
}

/** What the door's own answer says; undefined for any other text. */
function problemIn(text: string): FileProblem | undefined {
  try {
    const { error, message } = JSON.parse(text) as Partial<FileProblem>;
    return typeof error === "string" && typeof message === "string" ? { error, message } : undefined;
  } catch {
    return undefined;
  }
}

async function call<T>(path: string, init: RequestInit = {}): Promise<T> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(path, { ...init, credentials: "same-origin" });
    noteDoorDate(response.headers.get("date"));
    text = await response.text();
  } catch {
    throw refusalOf(0, "");
  }
  if (!response.ok) throw refusalOf(response.status, text);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

function change<T>(path: string, body: unknown): Promise<T> {
  return call<T>(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
}

/** An address with a place in its query. */
export function addressOf(path: string, place: Place, more: Readonly<Record<string, string>> = {}): string {
  return `${path}?${new URLSearchParams({ root: place.root, path: place.path, ...more }).toString()}`;
}

/** The door's calls. */
export const door = {
  me: (): Promise<SignedIn> => call("/api/me"),
  list: (place: Place, page: string, signal: AbortSignal): Promise<FileList> =>
    call(addressOf("/api/list", place, { page }), { signal }),
  stat: (place: Place): Promise<FileFacts> => call(addressOf("/api/stat", place)),
  quota: (root: string): Promise<QuotaFacts> => call(addressOf("/api/quota", { root, path: "/" })),
  shared: (): Promise<{ readonly places: readonly SharedPlace[] }> => call("/api/shared"),
  trash: (root: string, page: string): Promise<TrashList> =>
    call(addressOf("/api/trash", { root, path: "/" }, { page })),
  makeFolder: (place: Place): Promise<FileFacts> => change("/api/folder", place),
  move: (place: Place, target: string, conflict: "fail" | "rename"): Promise<FileFacts> =>
    change("/api/move", { ...place, target, conflict }),
  copy: (place: Place, target: string, conflict: "fail" | "rename"): Promise<FileFacts> =>
    change("/api/copy", { ...place, target, conflict }),
  toTrash: (place: Place): Promise<{ readonly id: string }> => change("/api/trash", place),
  restore: (root: string, id: string): Promise<FileFacts> =>
    change("/api/restore", { root, id, conflict: "rename" }),
  purge: (root: string, ids: readonly string[]): Promise<{ readonly items: number }> =>
    change("/api/purge", { root, ids, all: ids.length === 0 }),
  share: (place: Place, user: string): Promise<unknown> => change("/api/share", { ...place, user }),
  unshare: (place: Place, user: string): Promise<unknown> => change("/api/unshare", { ...place, user }),
  search: (place: Place, name: string): Promise<FoundNames> =>
    call(addressOf("/api/search", place, { name })),
  links: (place: Place): Promise<{ readonly links: readonly LinkFacts[] }> =>
    call(addressOf("/api/links", place)),
  makeLink: (wish: LinkWish): Promise<MadeLink> => change("/api/links", wish),
  revokeLink: (root: string, id: string): Promise<unknown> => change("/api/links/revoke", { root, id }),
  appPasswords: (): Promise<{ readonly passwords: readonly AppPasswordFacts[] }> =>
    call("/api/app-passwords"),
  makeAppPassword: (wish: AppPasswordWish): Promise<MadeAppPassword> => change("/api/app-passwords", wish),
  revokeAppPassword: (id: string): Promise<unknown> => change("/api/app-passwords/revoke", { id }),
  endUpload: (address: string): Promise<undefined> => call(address, { method: "DELETE", headers: TUS }),
  sessions: (): Promise<{ readonly sessions: readonly SessionFacts[] }> => call("/api/sessions"),
  endSessions: (
    which: { readonly id: string } | { readonly others: true },
  ): Promise<{ readonly ended: readonly SessionFacts[] }> => change("/api/sessions/end", which),
  signOutEverywhere: (): Promise<undefined> => call("/sign-out?everywhere=1", { method: "POST" }),
  signOut: (): Promise<undefined> => call("/sign-out", { method: "POST" }),
};

/** Rejects with the refusal of a download, of which a browser tells nobody why it has failed. */
export async function requireBegun(address: string): Promise<void> {
  const response = await fetch(address).catch(() => {
    throw refusalOf(0, "");
  });
  if (!response.ok) throw refusalOf(response.status, await response.text());
  await response.body?.cancel();
}

/** The text of a file's first bytes. */
export async function textOf(place: Place, bytes: number): Promise<string> {
  const headers = { range: `bytes=0-${bytes - 1}` };
  const response = await fetch(addressOf("/api/content", place), { headers });
  if (response.status === 416) return "";
  if (!response.ok) throw refusalOf(response.status, await response.text());
  return new TextDecoder().decode(await response.arrayBuffer());
}
