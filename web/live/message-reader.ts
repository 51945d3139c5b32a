// Turns the socket's texts into messages, in their order and never in one long task; ends with its socket.
import { type LiveMessage, MessageAssembly, type MessagePiece, piecesOf } from "./message-pieces.ts";

/** Reads the texts of one socket. */
export class MessageReader {
  readonly #onMessage: (message: LiveMessage) => void;
  readonly #assembly = new MessageAssembly();
  #worker: Worker | undefined;
  /** Texts that the worker has not done with, the oldest first. */
  #waiting: string[] = [];

  constructor(onMessage: (message: LiveMessage) => void) {
    this.#onMessage = onMessage;
    this.#worker = new Worker(new URL("./message-worker.ts", import.meta.url), { type: "module" });
    this.#worker.addEventListener("message", ({ data }: MessageEvent<MessagePiece>) => this.#take(data));
    // A console that was upgraded has the worker's file no more: then the page reads by itself, if less smoothly.
    this.#worker.addEventListener("error", () => this.#doWithout());
  }

  /** Takes what came over the socket. */
  read(text: string): void {
    this.#waiting.push(text);
    if (this.#worker === undefined) for (const piece of piecesOf(text)) this.#take(piece);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has none
    else this.#worker.postMessage(text);
  }

  /** Ends the worker: what it has not told is lost. */
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
