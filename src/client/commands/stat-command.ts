// The verb `stat`: shows all attributes of a file or folder.
import { Command } from "commander";
import { formatBytes } from "#base/bytes.ts";
import { type ClientFlags, withClientFlags } from "#client/connection/client-flags.ts";
import { type CommandHost, processHost } from "#client/connection/command-host.ts";
import { forEachNamed } from "#client/connection/each-named.ts";
import { attrOf, isFolder } from "#client/connection/listing.ts";
import { formatRemotePath } from "#client/connection/remote-path.ts";
import { localTimeWithZone } from "#client/terminal/local-time.ts";
import type { Attr } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { attrJson, crcText, kindName } from "./attr-text.ts";

/** Makes the parser of `grove stat`. */
export function command(host: CommandHost = processHost()): Command {
  return withClientFlags(
    new Command("stat")
      .description("Show all there is to know about files or folders.")
      .argument("<path...>", "files or folders on the cluster"),
    [
      ["grove stat report.pdf", "size, checksum, times, owner, who it is shared with"],
      ["grove stat . --json", "the current folder, for a program"],
    ],
  ).action((paths: string[], flags: ClientFlags) =>
    host.run("stat", flags, async (context) => {
      const cluster = await context.cluster();
      let isFirst = true;
      return forEachNamed(context, "stat", paths, async (typed) => {
        const place = await context.resolve(typed);
        const attr = await attrOf(cluster, place);
        if (context.isJson) await context.printJson(attrJson(attr));
        else await context.print(...(isFirst ? [] : [""]), ...rows(attr, place.root));
        isFirst = false;
      });
    }),
  );
}

const DAMAGED =
  "yes: its stored bytes were found wrong and are not given out; put it again, or restore it from a backup";

function rows(attr: Attr, root: string): string[] {
  const fields: [string, string][] = [
    ["path", formatRemotePath({ root, path: attr.path })],
    ["kind", kindName(attr)],
    ["size", `${formatBytes(attr.size)} (${attr.size} bytes)`],
    ...(isFolder(attr)
      ? ([["entries", String(attr.childCount)]] as [string, string][])
      : ([["crc32", crcText(attr)]] as [string, string][])),
    ["modified", localTimeWithZone(attr.mtimeMs)],
    ["changed", localTimeWithZone(attr.ctimeMs)],
    ["owner", attr.owner],
    ["made by", attr.createdBy],
    ["shared with", attr.shared.length === 0 ? "nobody" : attr.shared.join(", ")],
    ["etag", attr.etag],
    ...(attr.damaged ? ([["damaged", DAMAGED]] as [string, string][]) : []),
  ];
  return fields.map(([name, value]) => `${name.padEnd(12)} ${value}`);
}
