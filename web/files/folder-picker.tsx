// Chooses a folder as the target of a move or a copy.
import { type ReactNode, useState } from "react";
import { Dialog } from "./dialog.tsx";
import { useFolder } from "./use-folder.ts";
import { below, folderOf, nameOf, shownName } from "./words.ts";

const BY_NAME = { key: "name", isDown: false } as const;

/** The dialog; `act` gets the chosen folder. */
export function FolderPicker(props: {
  readonly title: string;
  readonly button: string;
  readonly root: string;
  readonly first: string;
  readonly act: (folder: string) => Promise<void>;
  readonly onClose: () => void;
}): ReactNode {
  const [path, setPath] = useState(props.first);
  const [problem, setProblem] = useState<string>();
  const { entries, isLoading, problem: refusal } = useFolder({ root: props.root, path }, BY_NAME, "");
  const folders = entries.filter(({ kind }) => kind === "folder");
  const choose = async (): Promise<void> => {
    try {
      await props.act(path);
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <p>
        To: <b>{path === "/" ? "the top folder" : shownName(nameOf(path))}</b>
      </p>
      <ul className="picker">
        {path !== "/" && (
          <li>
            <button type="button" onClick={({ detail }) => detail < 2 && setPath(folderOf(path))}>
              ↑ One folder up
            </button>
          </li>
        )}
        {folders.map(({ name }) => (
          <li key={name}>
            <button type="button" onClick={({ detail }) => detail < 2 && setPath(below(path, name))}>
              {shownName(name)}
            </button>
          </li>
        ))}
      </ul>
      {isLoading && <p className="quiet">Reading the folder …</p>}
      {!isLoading && folders.length === 0 && refusal === undefined && (
        <p className="quiet">There are no folders in it.</p>
      )}
      {(problem ?? refusal?.message) !== undefined && (
        <p className="problem" role="alert">
          ■ {shownName(problem ?? refusal?.message ?? "")}
        </p>
      )}
      <div className="actions">
        <button type="button" onClick={props.onClose}>
          Cancel
        </button>
        <button type="button" className="main" onClick={() => void choose()}>
          {props.button}
        </button>
      </div>
    </Dialog>
  );
}
