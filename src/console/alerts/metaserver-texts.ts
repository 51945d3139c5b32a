// The texts about an offline MetaServer: what works meanwhile, and what does not.
import { because, lastAnswer, OFFLINE_AFTER, type Part, span } from "./text-parts.ts";

interface Facts {
  readonly detail: Readonly<Record<string, Part>>;
}

/** While it is offline. */
export function metaServerText({ detail }: Facts): { readonly title: string; readonly message: string } {
  const which = nameOf(detail["address"]);
  const away = `${which} has not answered for more than ${OFFLINE_AFTER}; ${lastAnswer(detail["last_seen"])}${because(detail["reason"])}.`;
  const others = detail["others"];
  const meanwhile =
    typeof others === "number" && others > 0
      ? "Another MetaServer answers: clients and nodes that know both go on with that one."
      : "Files go on being read and written on nodes that clients know. New users, clients that do not know the way yet, and nodes that join or renew a certificate wait until it is back.";
  return { title: `${which} is offline`, message: `${away} ${meanwhile}` };
}

/** After its return, or when it is no longer watched. */
export function metaServerOverText({ detail }: Facts): { readonly title: string; readonly message: string } {
  const which = nameOf(detail["address"]);
  if (detail["unwatched"] !== undefined) {
    const message = `${which} is not among those that the console was told to watch.`;
    return { title: `${which} is not watched any more`, message };
  }
  const away = detail["away_seconds"];
  const after = typeof away === "number" ? ` after ${span(away)}` : "";
  return { title: `${which} is online again`, message: `${which} answers again${after}.` };
}

function nameOf(address: Part): string {
  return address === undefined ? "A MetaServer" : `The MetaServer ${address}`;
}
