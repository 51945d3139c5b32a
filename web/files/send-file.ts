// Sends one file: small ones whole, others as a resumable upload (tus 1.0) that goes on where it stopped.
import { addressOf, door, type Place, Refusal, refusalOf, TUS } from "./api.ts";
import { keyOfUpload, whileSending } from "./cut-uploads.ts";

/** Larger files are sent as resumable uploads. */
export const WHOLE_MAX_BYTES = 4_000_000;
/** What a FileServer keeps of a cut upload comes in whole chunks of so many bytes. */
const CHUNK_BYTES = 4_000_000;
const PART_MAX_BYTES = 16 * CHUNK_BYTES;

/** Code of a file that was changed or removed on this device. */
export const FILE_GONE = "FILE_GONE";
const GONE = {
  error: FILE_GONE,
  message: "It was changed or removed on this device after it was chosen. Choose it again.",
} as const;

/** How a file is sent. */
export interface Sending {
  readonly place: Place;
  readonly file: File;
  readonly replaces: boolean;
  readonly signal: AbortSignal;
  /** Bytes of the file that have left. */
  readonly onSent: (bytes: number) => void;
  /** Bytes of it that the server has for sure. */
  readonly onSafe: (bytes: number) => void;
}

/** Sends it. Rejects with Refusal; a call again goes on with what had arrived. */
export async function sendFile(sending: Sending, isRepeated: boolean): Promise<void> {
  // The answer of the attempt before may have been lost.
  if (isRepeated && (await hasArrived(sending))) return;
  try {
    if (sending.file.size <= WHOLE_MAX_BYTES) await sendWhole(sending);
    else await sendResumably(sending);
  } catch (error) {
    const isUnanswered = error instanceof Refusal && error.status === 0;
    throw isUnanswered && !(await isReadable(sending.file)) ? new Refusal(400, GONE) : error;
  }
}

/** False for a file that was changed or removed since it was chosen: requests that send it have no answer. */
async function isReadable(file: File): Promise<boolean> {
  try {
    await file.slice(0, 1).arrayBuffer();
    return true;
  } catch {
    return false;
  }
}

async function hasArrived({ place, file }: Sending): Promise<boolean> {
  try {
    const { kind, size, changed_ms: changedMs } = await door.stat(place);
    return kind === "file" && size === file.size && changedMs === file.lastModified;
  } catch (error) {
    if (error instanceof Refusal && error.code === "NO_SUCH_PATH") return false;
    throw error;
  }
}

async function sendWhole(sending: Sending): Promise<void> {
  await request("PUT", addressOf("/api/content", sending.place, wishOf(sending)), {
    body: sending.file,
    headers: {},
    sending,
    from: 0,
  });
}

async function sendResumably(sending: Sending): Promise<void> {
  const key = keyOfUpload(sending.place.root, sending.place.path, sending.file);
  await whileSending(key, () => sendParts(sending, key));
}

async function sendParts(sending: Sending, key: string): Promise<void> {
  const { size } = sending.file;
  let address = localStorage.getItem(key) ?? undefined;
  let offset = address === undefined ? undefined : await offsetOf(address, sending);
  if (address === undefined || offset === undefined) {
    const begun = await request("POST", addressOf("/api/uploads", sending.place, wishOf(sending)), {
      headers: { ...TUS, "upload-length": String(size) },
      sending,
      from: 0,
    });
    address = begun.getResponseHeader("location") ?? "";
    offset = 0;
    localStorage.setItem(key, address);
  }
  // Only a part up to the end makes the file: an empty one, where all bytes are there since a refusal.
  for (let isMade = false; !isMade; ) {
    sending.onSafe(offset);
    const end = Math.min(offset + partOf(size), size);
    const sent = await request("PATCH", address, {
      body: sending.file.slice(offset, end),
      headers: {
        ...TUS,
        "upload-offset": String(offset),
        "content-type": "application/offset+octet-stream",
      },
      sending,
      from: offset,
    });
    offset = Number(sent.getResponseHeader("upload-offset") ?? "0");
    isMade = end === size && offset === size;
  }
  localStorage.removeItem(key);
}

/**
 * Bytes of one request: a hundredth of the file in whole chunks. A cut costs what is on its way, which without
 * parts is all that browser, network and door hold in their buffers.
 */
function partOf(size: number): number {
  const chunks = Math.ceil(size / 100 / CHUNK_BYTES);
  return Math.min(chunks * CHUNK_BYTES, PART_MAX_BYTES);
}

/** How much of an upload is safe; undefined for one that is over. */
async function offsetOf(address: string, sending: Sending): Promise<number | undefined> {
  try {
    const answer = await request("HEAD", address, { headers: TUS, sending, from: 0 });
    return Number(answer.getResponseHeader("upload-offset") ?? "0");
  } catch (error) {
    if (error instanceof Refusal && (error.status === 410 || error.status === 404)) return undefined;
    throw error;
  }
}

function wishOf({ file, replaces }: Sending): Record<string, string> {
  return { changed: String(file.lastModified), exists: replaces ? "replace" : "fail" };
}

/** One request; fetch tells nothing of what has left. */
function request(
  method: string,
  address: string,
  options: {
    readonly body?: Blob;
    readonly headers: Readonly<Record<string, string>>;
    readonly sending: Sending;
    readonly from: number;
  },
): Promise<XMLHttpRequest> {
  const { body, headers, sending, from } = options;
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    const stop = (): void => xhr.abort();
    xhr.open(method, address);
    for (const [name, value] of Object.entries(headers)) xhr.setRequestHeader(name, value);
    if (body !== undefined)
      xhr.upload.addEventListener("progress", ({ loaded }) => sending.onSent(from + loaded));
    xhr.addEventListener("loadend", () => {
      sending.signal.removeEventListener("abort", stop);
      if (xhr.status >= 200 && xhr.status < 300) resolve(xhr);
      else reject(refusalOf(xhr.status, xhr.responseText));
    });
    sending.signal.addEventListener("abort", stop);
    if (sending.signal.aborted) reject(refusalOf(0, ""));
    else xhr.send(body ?? null);
  });
}
