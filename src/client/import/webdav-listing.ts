// Reads the answer to a PROPFIND as it comes: addresses, kinds, sizes, times, etags.
import { SaxesParser } from "saxes";
import { toldTimeMs } from "#client/transfer/local-source.ts";

/** One resource of an answer. */
export interface DavResource {
  /** As the server wrote it. */
  readonly href: string;
  readonly isFolder: boolean;
  readonly sizeBytes: number;
  /** 0 where the server tells none. */
  readonly mtimeMs: number;
  readonly etag: string;
}

/** Resources of one folder, and bytes of the answer about them. */
const RESOURCES_MAX = 1_000_000;
const ANSWER_MAX_BYTES = 1_073_741_824;
const TEXT_MAX_LENGTH = 16_384;
const DEPTH_MAX = 64;

/** Takes the answer's text in pieces. Throws SyntaxError for what is no multistatus within the bounds. */
export class DavListing {
  readonly resources: DavResource[] = [];
  readonly #parser = new SaxesParser({ xmlns: true });
  readonly #open: string[] = [];
  #text = "";
  #bytes = 0;
  #href = "";
  #status = "";
  /** Those of the propstat that is open, and those of the response from propstats of 200. */
  #found = new Map<string, string>();
  #kept = new Map<string, string>();
  #isWhole = false;

  constructor() {
    this.#parser.on("error", (error) => {
      throw new SyntaxError(error.message);
    });
    this.#parser.on("doctype", () => {
      throw new SyntaxError("a document type");
    });
    this.#parser.on("opentag", ({ uri, local }) => this.#begin(uri === "DAV:" ? local : ""));
    this.#parser.on("text", (text) => this.#add(text));
    this.#parser.on("cdata", (text) => this.#add(text));
    this.#parser.on("closetag", () => this.#end());
  }

  /** Takes the next piece. */
  write(text: string, bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > ANSWER_MAX_BYTES) throw new SyntaxError("too long");
    this.#parser.write(text);
  }

  /** Ends the answer. */
  end(): void {
    this.#parser.close();
    if (!this.#isWhole) throw new SyntaxError("no multistatus");
  }

  #begin(name: string): void {
    if (this.#open.length >= DEPTH_MAX) throw new SyntaxError("too deep");
    if (this.#open.length === 0 && name !== "multistatus") throw new SyntaxError("no multistatus");
    this.#open.push(name);
    this.#text = "";
    if (name === "response") {
      this.#href = "";
      this.#kept = new Map();
    } else if (name === "propstat") {
      this.#found = new Map();
      this.#status = "";
    } else if (name === "collection") this.#found.set("collection", "yes");
  }

  #add(text: string): void {
    if (this.#text.length + text.length > TEXT_MAX_LENGTH) throw new SyntaxError("a text that is too long");
    this.#text += text;
  }

  #end(): void {
    const name = this.#open.pop();
    const text = this.#text.trim();
    const parent = this.#open.at(-1);
    this.#text = "";
    if (name === "href" && parent === "response") this.#href = text;
    else if (name === "status" && parent === "propstat") this.#status = text;
    else if (parent === "prop" && name !== undefined && name !== "resourcetype") this.#found.set(name, text);
    else if (name === "propstat") {
      if (/^HTTP\/\S+ 200\b/.test(this.#status)) for (const each of this.#found) this.#kept.set(...each);
    } else if (name === "response") this.#finish();
    else if (name === "multistatus") this.#isWhole = true;
  }

  #finish(): void {
    if (this.#href === "") throw new SyntaxError("a response without an address");
    if (this.resources.length >= RESOURCES_MAX) throw new SyntaxError("too many resources");
    const size = Number(this.#kept.get("getcontentlength") ?? "0");
    const time = Date.parse(this.#kept.get("getlastmodified") ?? "");
    this.resources.push({
      href: this.#href,
      isFolder: this.#kept.has("collection"),
      sizeBytes: Number.isSafeInteger(size) && size >= 0 ? size : 0,
      mtimeMs: Number.isFinite(time) ? toldTimeMs(time) : 0,
      etag: this.#kept.get("getetag") ?? "",
    });
  }
}
