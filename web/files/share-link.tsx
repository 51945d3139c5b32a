// Sharing by link: the links of a file or folder, and one more of them.
import { type ReactNode, useState } from "react";
import type { MadeLink } from "#wire/webapi/file-access.ts";
import { door, type LinkWish, type Place } from "./api.ts";
import { CopyField } from "./copy-field.tsx";
import { ChoiceField, TextField } from "./field.tsx";
import { endAfter, LifeChoice } from "./life.tsx";
import { LinkRow } from "./link-row.tsx";
import { Problem } from "./problem.tsx";
import { useAct } from "./use-act.ts";
import { useLoaded } from "./use-loaded.ts";
import { useNow } from "./use-now.ts";

const GIB = 2 ** 30;
const DROP_SIZES = [1, 5, 20, 100];
const DROP_FILES = 100;

/** Shows them. */
export function ShareLink(props: { readonly place: Place; readonly isFolder: boolean }): ReactNode {
  const { place, isFolder } = props;
  const nowMs = useNow();
  const [made, setMade] = useState<MadeLink>();
  const [isAsking, setIsAsking] = useState(false);
  const links = useLoaded(`${place.root} ${place.path}`, () => door.links(place));
  const own = links.value?.links.filter(({ path }) => path === place.path) ?? [];
  const ask = (): void => {
    setMade(undefined);
    setIsAsking(true);
  };
  return (
    <section aria-label="By link">
      <h3>By link</h3>
      <p className="quiet">Whoever has the address gets in without an account, until you end it.</p>
      {own.length > 0 && (
        <ul className="rows">
          {own.map((link) => (
            <LinkRow
              key={link.id}
              link={link}
              nowMs={nowMs}
              onRevoke={() =>
                void links.run(async () => {
                  await door.revokeLink(place.root, link.id);
                  if (made?.link.id === link.id) setMade(undefined);
                })
              }
            />
          ))}
        </ul>
      )}
      {made !== undefined && <CopyField label="Address of the new link, shown this once" text={made.url} />}
      {isAsking ? (
        <LinkForm
          place={place}
          isFolder={isFolder}
          onClose={() => setIsAsking(false)}
          onMade={(link) => {
            setMade(link);
            setIsAsking(false);
            links.refresh();
          }}
        />
      ) : (
        <button type="button" onClick={ask}>
          {own.length === 0 ? "Make a link" : "Make another link"}
        </button>
      )}
      <Problem of={links.problem} />
    </section>
  );
}

/** What somebody has typed. */
interface Typed {
  readonly isDrop: boolean;
  readonly days: number;
  readonly most: string;
  readonly gib: number;
  readonly password: string;
}

const FIRST: Typed = { isDrop: false, days: 30, most: "", gib: 1, password: "" };

function LinkForm(props: {
  readonly place: Place;
  readonly isFolder: boolean;
  readonly onMade: (link: MadeLink) => void;
  readonly onClose: () => void;
}): ReactNode {
  const [typed, setTyped] = useState(FIRST);
  const { act, isBusy, problem } = useAct(async () =>
    props.onMade(await door.makeLink(wishOf(props.place, typed))),
  );
  return (
    <form
      className="choices"
      onSubmit={(event) => {
        event.preventDefault();
        void act();
      }}
    >
      <LinkFields
        typed={typed}
        isFolder={props.isFolder}
        onType={(some) => setTyped((before) => ({ ...before, ...some }))}
      />
      <div className="wide">
        <Problem of={problem} />
        <div className="actions">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="main" disabled={isBusy}>
            Make the link
          </button>
        </div>
      </div>
    </form>
  );
}

function wishOf(place: Place, { isDrop, days, most, gib, password }: Typed): LinkWish {
  const limit = Number(most === "" ? (isDrop ? DROP_FILES : 0) : most);
  const limits = isDrop
    ? { max_downloads: 0, max_files: limit, max_bytes: gib * GIB }
    : { max_downloads: limit, max_files: 0, max_bytes: 0 };
  return { ...place, drop: isDrop, password, ends_ms: endAfter(days), ...limits };
}

function LinkFields(props: {
  readonly typed: Typed;
  readonly isFolder: boolean;
  readonly onType: (some: Partial<Typed>) => void;
}): ReactNode {
  const { typed, onType } = props;
  const { isDrop, days, most, gib, password } = typed;
  const use = (text: string): void =>
    onType({ isDrop: text === "drop", days: text === "drop" && days === 0 ? FIRST.days : days });
  return (
    <>
      {props.isFolder && (
        <div className="wide">
          <ChoiceField label="Others can" value={isDrop ? "drop" : "read"} onText={use}>
            <option value="read">read what is in it</option>
            <option value="drop">send files into it, and see nothing</option>
          </ChoiceField>
        </div>
      )}
      <LifeChoice days={days} needsEnd={isDrop} onChange={(next) => onType({ days: next })} />
      <TextField
        label={isDrop ? "At most so many files" : "Downloads, at most"}
        inputMode="numeric"
        pattern="[1-9][0-9]{0,8}"
        title="A whole number"
        placeholder={isDrop ? String(DROP_FILES) : "no limit"}
        value={most}
        onText={(text) => onType({ most: text.trim() })}
      />
      {isDrop && (
        <ChoiceField label="In all" value={String(gib)} onText={(text) => onType({ gib: Number(text) })}>
          {DROP_SIZES.map((size) => (
            <option key={size} value={size}>
              {size} GiB
            </option>
          ))}
        </ChoiceField>
      )}
      <TextField
        label="Password, if you want one"
        spellCheck={false}
        maxLength={256}
        value={password}
        onText={(text) => onType({ password: text })}
      />
    </>
  );
}
