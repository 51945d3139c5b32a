// PROPPATCH: changes dead properties, all or none.
import type { DavExchange } from "./exchange.ts";
import { MULTISTATUS_END, MULTISTATUS_START, XML_TYPE } from "./find-method.ts";
import { isLive, type PropertySource } from "./live-properties.ts";
import { readProppatch } from "./request-bodies.ts";
import type { PropertyChange } from "./resource.ts";
import { XML_MAX_BYTES } from "./xml-body.ts";
import { emptyElement, escapedXml } from "./xml-text.ts";

/** Answers a PROPPATCH. One change of a live property fails all (RFC 4918, section 9.2). */
export async function answerProppatch(exchange: DavExchange): Promise<void> {
  const changes = readProppatch(await exchange.body(XML_MAX_BYTES));
  const resource = await exchange.resource();
  const { path, isCollection } = resource;
  exchange.checkVersion(resource);
  const live = changes.filter((change) => isLive(nameOf(change)));
  if (live.length === 0) await exchange.tree.changeProperties(path, changes, exchange.tokens);
  const href: ReturnType<PropertySource["hrefOf"]> = exchange.hrefOf(path, isCollection);
  const stats =
    live.length === 0
      ? propstat(changes, "200 OK")
      : propstat(live, "403 Forbidden", "<D:error><D:cannot-modify-protected-property/></D:error>") +
        propstat(
          changes.filter((change) => !isLive(nameOf(change))),
          "424 Failed Dependency",
        );
  const response = `<D:response><D:href>${escapedXml(href)}</D:href>${stats}</D:response>`;
  exchange.replyText(207, XML_TYPE, MULTISTATUS_START + response + MULTISTATUS_END);
}

function nameOf(change: PropertyChange): { readonly namespace: string; readonly name: string } {
  return change.kind === "set" ? change.property : change;
}

function propstat(changes: readonly PropertyChange[], status: string, error = ""): string {
  if (changes.length === 0) return "";
  const names = changes.map(nameOf).map(({ namespace, name }) => emptyElement(namespace, name));
  return `<D:propstat><D:prop>${names.join("")}</D:prop><D:status>HTTP/1.1 ${status}</D:status>${error}</D:propstat>`;
}
