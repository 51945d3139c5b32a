// The flags of the shared engine: its database and its object store.
import { type Command, InvalidArgumentError } from "commander";

/** Adds the flags to a parser. */
export function withEngineFlags(parser: Command): Command {
  return parser
    .option(
      "--engine <url>",
      "the shared engine: postgres://USER@HOST/DATABASE keeps the inodes of many nodes; needs --store (default: files in the data folder)",
    )
    .option("--engine-file <file>", "a file whose first line is that URL, where it holds a password")
    .option(
      "--store <url>",
      "its chunks: s3://BUCKET/PREFIX?endpoint=https://HOST&credentials=FILE, also region, addressing, ca",
    )
    .option(
      "--engine-lease <seconds>",
      "its roots go to other nodes after so long without a sign of life: 2 to 60 (default: 10)",
      leaseSeconds,
    );
}

function leaseSeconds(text: string): number {
  const seconds = /^[0-9]{1,2}$/.test(text) ? Number(text) : 0;
  if (seconds < 2 || seconds > 60) throw new InvalidArgumentError("write seconds from 2 to 60.");
  return seconds;
}
