// Parses the socket's messages in a worker, to keep the page's thread free.
import { piecesOf } from "./message-pieces.ts";

// The page's types have no worker scope.
const page = globalThis as unknown as Pick<Worker, "postMessage">;

addEventListener("message", ({ data }: MessageEvent<string>) => {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker's page needs none
  for (const piece of piecesOf(data)) page.postMessage(piece);
});
