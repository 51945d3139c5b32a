// Reads the socket's messages beside the page, so that the page's own thread is free while a long one is read.
import { piecesOf } from "./message-pieces.ts";

// The page's types know no workers.
const page = globalThis as unknown as Pick<Worker, "postMessage">;

addEventListener("message", ({ data }: MessageEvent<string>) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker's page needs none
  for (const piece of piecesOf(data)) page.postMessage(piece);
});
