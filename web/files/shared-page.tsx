// What others share with the person.
import { type ReactNode, useState } from "react";
import type { FileFacts, SharedPlace } from "#wire/webapi/files.ts";
import { door } from "./api.ts";
import { goTo } from "./place-in-address.ts";
import { Preview } from "./preview.tsx";
import { Problem } from "./problem.tsx";
import { useAct } from "./use-act.ts";
import { useLoaded } from "./use-loaded.ts";
import { nameOf, shownName } from "./words.ts";

/** Shows it. */
export function SharedPage(): ReactNode {
  const shared = useLoaded("", door.shared);
  const places = shared.value?.places;
  // A file that is shared by itself lies in no folder that may be read.
  const [shown, setShown] = useState<FileFacts>();
  const { act: open, problem: refusal } = useAct(async ({ owner: root, path }: SharedPlace) => {
    const facts = await door.stat({ root, path });
    if (facts.kind === "folder") goTo({ kind: "folder", root, path });
    else setShown(facts);
  });
  const problem = shared.problem ?? refusal;
  return (
    <>
      <h1>Shared with me</h1>
      <Problem of={problem} />
      {places === undefined && problem === undefined && <p>Asking …</p>}
      {places?.length === 0 && (
        <p className="empty">
          Nobody shares anything with you yet. What somebody shares appears here by itself.
        </p>
      )}
      <ul className="rows">
        {places?.map((place) => (
          <li key={`${place.owner} ${place.path}`}>
            <div>
              <button type="button" className="plain name" onClick={() => void open(place)}>
                {place.path === "/" ? "All files" : shownName(nameOf(place.path))}
              </button>
              <span className="quiet">from {place.owner}</span>
            </div>
          </li>
        ))}
      </ul>
      {shown !== undefined && (
        <Preview
          entry={shown}
          place={{ root: shown.owner, path: shown.path }}
          onClose={() => setShown(undefined)}
        />
      )}
    </>
  );
}
