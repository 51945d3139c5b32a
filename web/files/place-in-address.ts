// What the page shows, as its address: links can be kept, and the browser's own buttons work.
import { useSyncExternalStore } from "react";
import type { Place } from "./api.ts";

/** A view of the page. */
export type View =
  | ({ readonly kind: "folder"; readonly show?: string } & Place)
  | ({ readonly kind: "search"; readonly text: string } & Place)
  | { readonly kind: "access" }
  | { readonly kind: "links" }
  | { readonly kind: "shared" }
  | { readonly kind: "trash"; readonly root: string };

/** The view in an address. */
export function viewOf(search: string): View {
  const query = new URLSearchParams(search);
  const kind = query.get("view");
  if (kind === "access" || kind === "links" || kind === "shared") return { kind };
  const root = query.get("root") ?? "";
  if (kind === "trash") return { kind, root };
  const named = query.get("path") ?? "/";
  const place = { root, path: named.startsWith("/") ? named : "/" };
  const text = query.get("find")?.trim() ?? "";
  if (text !== "") return { kind: "search", ...place, text };
  const show = query.get("show");
  return { kind: "folder", ...place, ...(show === null ? {} : { show }) };
}

/** The address of a view. */
export function searchOf(view: View): string {
  const query = new URLSearchParams();
  if (view.kind !== "folder" && view.kind !== "search") query.set("view", view.kind);
  if ("root" in view && view.root !== "") query.set("root", view.root);
  if ("path" in view && view.path !== "/") query.set("path", view.path);
  if (view.kind === "search") query.set("find", view.text);
  else if (view.kind === "folder" && view.show !== undefined) query.set("show", view.show);
  const text = query.toString();
  return text === "" ? "/" : `?${text}`;
}

/** Goes to a view; one that is shown already is no step to go back from. */
export function goTo(view: View): void {
  if (searchOf(view) === searchOf(viewOf(location.search))) return;
  history.pushState(null, "", searchOf(view));
  dispatchEvent(new PopStateEvent("popstate"));
}

function subscribe(listener: () => void): () => void {
  addEventListener("popstate", listener);
  return () => removeEventListener("popstate", listener);
}

/** The search part of the address, kept up with. */
export function useSearch(): string {
  return useSyncExternalStore(subscribe, () => location.search);
}
