// Sharing a file or folder: with people who have an account, and by link with everybody else.
import { type ReactNode, useId, useState } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";
import { door, type Place } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "./problem.tsx";
import { ShareLink } from "./share-link.tsx";

/** What it needs. */
export interface ShareProps {
  readonly entry: FileEntry;
  readonly place: Place;
  readonly onChange: () => void;
  readonly onClose: () => void;
}

/** The dialog. */
export function ShareDialog(props: ShareProps): ReactNode {
  const { entry, place, onClose } = props;
  return (
    <Dialog title={`Share ${entry.name}`} onClose={onClose}>
      <SharePeople {...props} />
      <ShareLink place={place} isFolder={entry.kind === "folder"} />
    </Dialog>
  );
}

function SharePeople({ entry, place, onChange }: ShareProps): ReactNode {
  const [shared, setShared] = useState(entry.shared);
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<unknown>();
  const id = useId();
  const run = async (act: () => Promise<void>): Promise<void> => {
    setProblem(undefined);
    try {
      await act();
      onChange();
    } catch (error) {
      setProblem(error);
    }
  };
  const begin = (): Promise<void> =>
    run(async () => {
      const user = typed.trim().toLowerCase();
      await door.share(place, user);
      setShared((before) => [...new Set([...before, user])]);
      setTyped("");
    });
  const end = (user: string): Promise<void> =>
    run(async () => {
      await door.unshare(place, user);
      setShared((before) => before.filter((other) => other !== user));
    });
  return (
    <section aria-label="With people">
      <h3>With people</h3>
      <p className="quiet">They can read and write it. What they store there counts in your space.</p>
      <form
        className="line"
        onSubmit={(event) => {
          event.preventDefault();
          void begin();
        }}
      >
        <label htmlFor={id}>E-mail address</label>
        <input
          id={id}
          type="email"
          required
          autoComplete="off"
          spellCheck={false}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <button type="submit" className="main" disabled={typed.trim() === ""}>
          Share
        </button>
      </form>
      {shared.length === 0 ? (
        <p>It is shared with nobody.</p>
      ) : (
        <ul className="people">
          {shared.map((user) => (
            <li key={user}>
              <span>{user}</span>
              <button type="button" onClick={() => void end(user)} aria-label={`Stop sharing with ${user}`}>
                Stop
              </button>
            </li>
          ))}
        </ul>
      )}
      <Problem of={problem} />
    </section>
  );
}
