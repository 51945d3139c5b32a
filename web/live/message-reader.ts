// Parses the socket's texts into messages, in order and without a long task; ends with its socket.
import { type LiveMessage, MessageAssembly, type MessagePiece, piecesOf } from "./message-pieces.ts";

/** Reads the texts of one socket. */
export class MessageReader {
  readonly #onMessage: (message: LiveMessage) => void;
  readonly #assembly = new MessageAssembly();
  #worker: Worker | undefined;
  /** Texts that the worker has not parsed, oldest first. */
  #waiting: string[] = [];

  constructor(onMessage: (message: LiveMessage) => void) {
    this.#onMessage = onMessage;
    this.#worker = new Worker(new URL("./message-worker.ts", import.meta.url), { type: "module" });
    this.#worker.addEventListener("message", ({ data }: MessageEvent<MessagePiece>) => this.#take(data));
    // After an upgrade the console lacks the worker's old file: then the page parses by itself, less
    // smoothly.
    this.#worker.addEventListener("error", () => this.#doWithout());
  }

  /** Takes a text from the socket. */
  read(text: string): void {
    this.#waiting.push(text);
    if (this.#worker === undefined) for (const piece of piecesOf(text)) this.#take(piece);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has none
    else this.#worker.postMessage(text);
  }

  /** Ends the worker and drops its pending texts. */
  close(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#waiting = [];
  }

  #doWithout(): void {
    const texts = this.#waiting;
    this.close();
    for (const text of texts) this.read(text);
  }

  #take(piece: MessagePiece): void {
    const message = this.#assembly.take(piece);
    if (message === undefined) return;
    this.#waiting.shift();
    this.#onMessage(message);
  }
}
