// What lets others in, programs and browsers: links, app passwords, sessions. A sign-in of the last ten minutes is needed for all of it.
import { ONCE, SHORT } from "#client/connection/cluster.ts";
import { attrOf, isFolder } from "#client/connection/listing.ts";
import { DavRefusal } from "#door/webdav/status-table.ts";
import type { Link } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import type { AppPassword, BrowserSession } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import {
  type AppPasswordFacts,
  appPasswordRequest,
  appPasswordRevocation,
  type LinkFacts,
  linkRequest,
  linkRevocation,
  type MadeAppPassword,
  type MadeLink,
  type SessionFacts,
  sessionEnd,
} from "#wire/webapi/file-access.ts";
import { bodyOf, type PageCall, placeOf } from "./call.ts";

/** Links to a place and to what is below it. */
export async function links({ exchange, person }: PageCall): Promise<{ readonly links: LinkFacts[] }> {
  const place = placeOf(exchange);
  const found = await person.cluster.runAt(place, SHORT, (server) =>
    server.files.listLinks(place, server.unary),
  );
  return { links: found.links.map(linkOf) };
}

/** Makes a link. */
export async function makeLink({ exchange, person, publicUrl }: PageCall): Promise<MadeLink> {
  const asked = await bodyOf(exchange, linkRequest);
  const { root, path, drop, password } = asked;
  const request = {
    root,
    path,
    drop,
    password,
    endsMs: BigInt(asked.ends_ms),
    maxDownloads: BigInt(asked.max_downloads),
    maxBytes: BigInt(asked.max_bytes),
    maxFiles: BigInt(asked.max_files),
  };
  const { token, link } = await person.cluster.runAt({ root, path }, ONCE, (server) =>
    server.files.createLink(request, server.unary),
  );
  if (link === undefined) throw new DavRefusal(502, "the server told nothing of the link");
  return { url: `${publicUrl}/l/${token}`, link: linkOf(link) };
}

/** Ends a link. */
export async function revokeLink({ exchange, person }: PageCall): Promise<{ readonly id: string }> {
  const { root, id } = await bodyOf(exchange, linkRevocation);
  await person.cluster.run(root, ONCE, (server) => server.files.revokeLink({ root, id }, server.unary));
  return { id };
}

/** The person's app passwords. */
export async function appPasswords({
  person,
}: PageCall): Promise<{ readonly passwords: AppPasswordFacts[] }> {
  return { passwords: (await person.appPasswords.list()).map(appPasswordOf) };
}

/** Makes an app password. */
export async function makeAppPassword({ exchange, person }: PageCall): Promise<MadeAppPassword> {
  const { name, read_only: readOnly, folder, ends_ms: endsMs } = await bodyOf(exchange, appPasswordRequest);
  const attr = folder === "" ? undefined : await attrOf(person.cluster, { root: "", path: folder });
  if (attr !== undefined && !isFolder(attr)) throw new DavRefusal(400, "this is a file; name a folder");
  const wish = {
    name: name.trim(),
    readOnly,
    folderId: attr?.id ?? "",
    folderPath: attr?.path ?? "",
    endsMs,
  };
  const { password, appPassword } = await person.appPasswords.make(wish);
  if (appPassword === undefined) throw new DavRefusal(502, "the server told nothing of the app password");
  return { password, facts: appPasswordOf(appPassword) };
}

/** Ends an app password. */
export async function revokeAppPassword({ exchange, person }: PageCall): Promise<{ readonly id: string }> {
  const { id } = await bodyOf(exchange, appPasswordRevocation);
  await person.appPasswords.revoke(id);
  return { id };
}

/** The person's browsers. */
export async function sessions({ person }: PageCall): Promise<{ readonly sessions: SessionFacts[] }> {
  return { sessions: (await person.sessions.list()).map(sessionOf) };
}

/** Ends the session of a browser, or all but the one that asks. */
export async function endSessions({
  exchange,
  person,
}: PageCall): Promise<{ readonly ended: SessionFacts[] }> {
  const asked = await bodyOf(exchange, sessionEnd);
  const ended = await person.sessions.end("id" in asked ? asked.id : undefined);
  return { ended: ended.map(sessionOf) };
}

function sessionOf(session: BrowserSession): SessionFacts {
  const { id, browser, address, current } = session;
  return {
    id,
    browser,
    address,
    began_ms: Number(session.beganMs),
    last_used_ms: Number(session.lastUsedMs),
    ends_ms: Number(session.endsMs),
    current,
  };
}

function linkOf(link: Link): LinkFacts {
  return {
    id: link.id,
    path: link.path,
    drop: link.drop,
    has_password: link.hasPassword,
    created_ms: Number(link.createdMs),
    ends_ms: Number(link.endsMs),
    max_downloads: Number(link.maxDownloads),
    downloads: Number(link.downloads),
    max_bytes: Number(link.maxBytes),
    bytes: Number(link.bytes),
    max_files: Number(link.maxFiles),
    files: Number(link.files),
  };
}

function appPasswordOf(password: AppPassword): AppPasswordFacts {
  return {
    id: password.id,
    name: password.name,
    read_only: password.readOnly,
    folder: password.folderPath,
    created_ms: Number(password.createdMs),
    ends_ms: Number(password.endsMs),
    last_used_ms: Number(password.lastUsedMs),
  };
}
