// Reads a join token out of other users' sight: from a file, or from standard input.
import { readFile } from "node:fs/promises";
import { GroveError } from "#base/errors.ts";
import { isTty, type Terminal } from "#client/terminal/terminal.ts";

/** Longest text that is read for a token. */
const INPUT_MAX_LENGTH = 4_096;

/** The possible sources of the token. */
export interface TokenSource {
  /** In the arguments, which other users can see. */
  readonly token?: string | undefined;
  readonly tokenFile?: string | undefined;
}

/** The token's text. Throws BAD_ARGUMENT when there is none, or two. */
export async function readTokenText(source: TokenSource, terminal: Terminal): Promise<string> {
  if (source.token !== undefined && source.tokenFile !== undefined) {
    throw new GroveError("BAD_ARGUMENT", "give -token or -token_file, not both");
  }
  if (source.token !== undefined && source.token !== "-") return source.token;
  const isFile = source.tokenFile !== undefined && source.tokenFile !== "-";
  const text = isFile ? await readFile(source.tokenFile ?? "", "utf8") : await readStandardInput(terminal);
  const token = text.slice(0, INPUT_MAX_LENGTH).trim();
  if (token !== "") return token;
  throw new GroveError(
    "BAD_ARGUMENT",
    isFile
      ? `${source.tokenFile} is empty`
      : "no token came on standard input: pipe it in, or give -token_file FILE",
  );
}

async function readStandardInput({ input, error }: Terminal): Promise<string> {
  if (isTty(input)) error.write("join token: ");
  let text = "";
  for await (const piece of input) {
    text += String(piece);
    if (text.includes("\n") || text.length > INPUT_MAX_LENGTH) break;
  }
  return text.split("\n", 1)[0] ?? "";
}
