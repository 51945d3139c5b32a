// Resumable uploads over a played door: success means a file, and an end here is an end at the door.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { cutUploads, endUploads, keyOfUpload, whileSending } from "./cut-uploads.ts";
import { sendFile } from "./send-file.ts";

const ADDRESS = "/api/uploads/abc";
const SIZE = 8_000_000;
const PLACE = { root: "", path: "/a.bin" };
const FILE = new File([new Uint8Array(SIZE)], "a.bin", { lastModified: 1_700_000_000_000 });
const KEY = keyOfUpload(PLACE.root, PLACE.path, FILE);

/** A request as the door gets it. */
interface Asked {
  readonly method: string;
  readonly offset: string | undefined;
  readonly bytes: number;
}

interface Answer {
  readonly status: number;
  readonly offset?: number;
  readonly text?: string;
}

let stored: Map<string, string>;
let asked: Asked[];
let answers: Answer[];

class PlayedRequest extends EventTarget {
  readonly upload = new EventTarget();
  readonly #headers = new Map<string, string>();
  #method = "";
  #answer: Answer = { status: 0 };
  open(method: string): void {
    this.#method = method;
  }
  setRequestHeader(name: string, value: string): void {
    this.#headers.set(name, value);
  }
  send(body: Blob | null): void {
    asked.push({ method: this.#method, offset: this.#headers.get("upload-offset"), bytes: body?.size ?? 0 });
    this.#answer = answers.shift() ?? assert.fail("one request too many");
    this.dispatchEvent(new Event("loadend"));
  }
  get status(): number {
    return this.#answer.status;
  }
  get responseText(): string {
    return this.#answer.text ?? "";
  }
  getResponseHeader(name: string): string | null {
    return name === "location" ? ADDRESS : String(this.#answer.offset);
  }
}

beforeEach(() => {
  stored = new Map();
  asked = [];
  answers = [];
  const storage = {
    getItem: (key: string) => stored.get(key) ?? null,
    setItem: (key: string, value: string) => stored.set(key, value),
    removeItem: (key: string) => stored.delete(key),
  };
  // The keys of a browser's storage are its own properties.
  const localStorage = new Proxy(storage, {
    ownKeys: () => [...stored.keys()],
    getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true }),
  });
  Object.defineProperty(globalThis, "localStorage", { value: localStorage, configurable: true });
  Object.assign(globalThis, { XMLHttpRequest: PlayedRequest });
});

async function send(): Promise<readonly number[]> {
  const safe: number[] = [];
  const signal = new AbortController().signal;
  const onSafe = (bytes: number): number => safe.push(bytes);
  await sendFile(
    { place: PLACE, file: FILE, replaces: false, signal, onSent: () => undefined, onSafe },
    false,
  );
  return safe;
}

test("an upload with all its bytes there is done once an empty part has made the file", async () => {
  stored.set(KEY, ADDRESS);
  answers = [
    { status: 200, offset: SIZE },
    { status: 423, text: '{"error":"LOCKED","message":"locked"}' },
  ];
  await assert.rejects(send(), { code: "LOCKED" });
  assert.equal(stored.get(KEY), ADDRESS, "it goes on later");
  answers = [
    { status: 200, offset: SIZE },
    { status: 204, offset: SIZE },
  ];
  await send();
  assert.deepEqual(asked.slice(2), [
    { method: "HEAD", offset: undefined, bytes: 0 },
    { method: "PATCH", offset: String(SIZE), bytes: 0 },
  ]);
  assert.equal(stored.size, 0);
});

test("parts go on where the door says, and what is safe is told", async () => {
  answers = [
    { status: 201 },
    { status: 204, offset: 4_000_000 },
    { status: 204, offset: 4_000_000 },
    { status: 204, offset: SIZE },
  ];
  assert.deepEqual(await send(), [0, 4_000_000, 4_000_000]);
  assert.deepEqual(
    asked.map(({ method, offset, bytes }) => [method, offset, bytes]),
    [
      ["POST", undefined, 0],
      ["PATCH", "0", 4_000_000],
      ["PATCH", "4000000", 4_000_000],
      ["PATCH", "4000000", 4_000_000],
    ],
  );
});

test("a part that leaves bytes to come is no file, also where the door says that all are there", async () => {
  answers = [{ status: 201 }, { status: 204, offset: SIZE }, { status: 204, offset: SIZE }];
  await send();
  assert.equal(asked.at(-1)?.bytes, 0);
});

test("an upload that is given up ends at the door, and is not known as cut off", async (t) => {
  stored.set(KEY, ADDRESS);
  stored.set("grove-tiles", "1");
  assert.equal((await cutUploads()).length, 1);
  await whileSending(KEY, async () => assert.deepEqual(await cutUploads(), [], "a page sends it"));
  const ask = t.mock.method(globalThis, "fetch", async () => new Response(null, { status: 204 }));
  endUploads([KEY, keyOfUpload("", "/never-begun.bin", FILE)]);
  assert.deepEqual(await cutUploads(), []);
  assert.deepEqual([...stored.keys()], ["grove-tiles"]);
  assert.equal(ask.mock.callCount(), 1);
  const [address, init] = ask.mock.calls[0]?.arguments ?? [];
  assert.equal(address, ADDRESS);
  assert.equal(init?.method, "DELETE");
  assert.deepEqual(init?.headers, { "tus-resumable": "1.0.0" });
});
