// Asks what a new app password is for.
import { type ReactNode, useEffect, useRef, useState } from "react";
import type { MadeAppPassword } from "#wire/webapi/file-access.ts";
import { door } from "./api.ts";
import { Dialog } from "./dialog.tsx";
import { TextField } from "./field.tsx";
import { endAfter, LifeChoice } from "./life.tsx";
import { Problem } from "./problem.tsx";
import { useAct } from "./use-act.ts";

/** The dialog. */
export function AppPasswordDialog(props: {
  readonly onMade: (password: MadeAppPassword) => void;
  readonly onClose: () => void;
}): ReactNode {
  const [name, setName] = useState("");
  const [isReadOnly, setIsReadOnly] = useState(false);
  const [folder, setFolder] = useState("/");
  const [days, setDays] = useState(0);
  const first = useRef<HTMLInputElement>(null);
  useEffect(() => first.current?.focus(), []);
  const { act, isBusy, problem } = useAct(async () => {
    const path = `/${folder
      .split("/")
      .filter((part) => part !== "")
      .join("/")}`;
    const wish = { name: name.trim(), read_only: isReadOnly, folder: path === "/" ? "" : path };
    props.onMade(await door.makeAppPassword({ ...wish, ends_ms: endAfter(days) }));
  });
  return (
    <Dialog title="Make an app password" onClose={props.onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void act();
        }}
      >
        <TextField
          label="For which program or device"
          ref={first}
          required
          maxLength={64}
          placeholder="Telephone"
          value={name}
          onText={setName}
        />
        <TextField
          label="Only below this folder"
          required
          spellCheck={false}
          value={folder}
          onText={setFolder}
        />
        <p className="quiet">A single stroke, /, stands for all of your files.</p>
        <LifeChoice days={days} needsEnd={false} onChange={setDays} />
        <label className="check">
          <input
            type="checkbox"
            checked={isReadOnly}
            onChange={(event) => setIsReadOnly(event.target.checked)}
          />
          It may only read
        </label>
        <Problem of={problem} />
        <div className="actions">
          <button type="button" onClick={props.onClose}>
            Cancel
          </button>
          <button type="submit" className="main" disabled={isBusy || name.trim() === ""}>
            Make
          </button>
        </div>
      </form>
    </Dialog>
  );
}
