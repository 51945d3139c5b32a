// What others share with the person.
import { type ReactNode, useEffect, useState } from "react";
import type { SharedPlace } from "#wire/webapi/files.ts";
import { door } from "./api.ts";
import { goTo } from "./place-in-address.ts";
import { nameOf } from "./words.ts";

/** Shows it. */
export function SharedPage(): ReactNode {
  const [places, setPlaces] = useState<readonly SharedPlace[]>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    door.shared().then(
      (found) => setPlaces(found.places),
      (error: unknown) => setProblem(error instanceof Error ? error.message : String(error)),
    );
  }, []);
  return (
    <>
      <h1>Shared with me</h1>
      {problem !== undefined && (
        <p className="problem" role="alert">
          ■ {problem}
        </p>
      )}
      {places === undefined && problem === undefined && <p>Asking …</p>}
      {places?.length === 0 && (
        <p className="empty">
          Nobody shares anything with you yet. What somebody shares appears here by itself.
        </p>
      )}
      <ul className="rows">
        {places?.map(({ owner, path }) => (
          <li key={`${owner} ${path}`}>
            <div>
              <button
                type="button"
                className="plain name"
                onClick={() => goTo({ kind: "folder", root: owner, path })}
              >
                {path === "/" ? "All files" : nameOf(path)}
              </button>
              <span className="quiet">from {owner}</span>
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}
