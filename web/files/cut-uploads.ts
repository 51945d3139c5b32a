// Large uploads that a closed page has left behind: what they were, until their files are chosen again.
import { door } from "./api.ts";
import { nameOf } from "./words.ts";

const PREFIX = "grove-upload ";

/** One of them. */
export interface CutUpload {
  readonly key: string;
  readonly name: string;
  /** Folder into which it was going. */
  readonly path: string;
  readonly bytes: number;
}

/** Where the address of a resumable upload is kept. */
export function keyOfUpload(root: string, path: string, file: File): string {
  return PREFIX + [root, path, file.size, file.lastModified].join(" ");
}

/** Browsers without locks, as those of a door without TLS elsewhere, know of no other page's. */
function locks(): LockManager | undefined {
  return (navigator as { readonly locks?: LockManager }).locks;
}

/** Sends an upload; while it does, no page of this browser takes it for one that was left behind. */
export async function whileSending(key: string, send: () => Promise<void>): Promise<void> {
  const known = locks();
  await (known === undefined ? send() : known.request(key, { mode: "shared" }, send));
}

/** Those that this browser knows and no page of it sends. */
export async function cutUploads(): Promise<CutUpload[]> {
  const { held = [] } = (await locks()?.query()) ?? {};
  const sending = new Set(held.map(({ name }) => name));
  return knownUploads().filter(({ key }) => !sending.has(key));
}

function knownUploads(): CutUpload[] {
  return Object.keys(localStorage).flatMap((key) => {
    const found = /^grove-upload (\S*) (\/.*) (\d+) \d+$/su.exec(key);
    if (found === null) return [];
    const [, , path = "/", bytes = "0"] = found;
    return [{ key, name: nameOf(path), path, bytes: Number(bytes) }];
  });
}

/** Ends uploads at the door and here. One whose end the door does not hear of is removed by the server in time. */
export function endUploads(keys: readonly string[]): void {
  for (const key of keys) {
    const address = localStorage.getItem(key);
    localStorage.removeItem(key);
    if (address) door.endUpload(address).catch(() => undefined);
  }
}

/** Forgets them; what has arrived of them is removed by the server in time. */
export function forgetUploads(): void {
  for (const { key } of knownUploads()) localStorage.removeItem(key);
}
