// The way from the top to a folder, each step of it a way back.
import { type ReactNode } from "react";
import type { Place } from "./api.ts";
import { goTo } from "./place-in-address.ts";
import { shownName } from "./words.ts";

/** Shows it. */
export function Way({ here }: { readonly here: Place }): ReactNode {
  const names = here.path.split("/").filter((name) => name !== "");
  const top = here.root === "" ? "My files" : here.root;
  return (
    <nav aria-label="The way to this folder" className="way">
      <ol>
        {[top, ...names].map((name, index) => {
          const path = `/${names.slice(0, index).join("/")}`;
          const go = (): void => goTo({ kind: "folder", root: here.root, path });
          return (
            <li key={path}>
              {index === names.length ? (
                <h1>{shownName(name)}</h1>
              ) : (
                <button type="button" className="plain" onClick={go}>
                  {shownName(name)}
                </button>
              )}
            </li>
          );
        })}
      </ol>
    </nav>
  );
}
