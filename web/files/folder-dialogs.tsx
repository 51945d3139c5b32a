// The dialogs of a folder: a new folder, another name, another place, sharing, and a look at a file.
import { type ReactNode, useState } from "react";
import type { FileEntry } from "#wire/webapi/files.ts";
import { type ActsOf, copyAll, moveAll, rename } from "./acts.ts";
import { door } from "./api.ts";
import { Dialog, TextDialog } from "./dialog.tsx";
import { FolderPicker } from "./folder-picker.tsx";
import { Preview } from "./preview.tsx";
import { ShareDialog } from "./share-dialog.tsx";
import { below, counted, windowsTrouble } from "./words.ts";

/** Which of them is open. */
export type OpenDialog = "copy" | "folder" | "move" | "preview" | "rename" | "share";

/** A name of one entry, and no path. */
const ONE_NAME = {
  pattern: "[^\\/]*",
  patternHint: "A name cannot hold a stroke, /: it stands between folders.",
} as const;

/** What they need of the folder. */
export interface FolderDialogsProps {
  readonly open: OpenDialog | undefined;
  readonly acts: ActsOf;
  readonly entries: readonly FileEntry[];
  readonly chosen: readonly FileEntry[];
  /** True once all entries are known. */
  readonly isWhole: boolean;
  /** The file to look at first. */
  readonly shown: string | undefined;
  readonly onSelect: (names: ReadonlySet<string>) => void;
  readonly onClose: () => void;
}

/** Shows the open one. */
export function FolderDialogs(props: FolderDialogsProps): ReactNode {
  const { open, acts, chosen, onClose } = props;
  const { root, path } = acts.here;
  const [one] = chosen;
  switch (open) {
    case "folder":
      return <NewFolder {...props} />;
    case "move":
    case "copy": {
      const verb = open === "move" ? "Move" : "Copy";
      return (
        <FolderPicker
          title={`${verb} ${counted(chosen.length, "item")}`}
          button={`${verb} here`}
          root={root}
          first={path}
          onClose={onClose}
          act={async (target) => {
            onClose();
            await (open === "move" ? moveAll : copyAll)(acts, chosen, target);
          }}
        />
      );
    }
    case "preview":
      return <Look {...props} />;
    case "rename":
      return one === undefined ? null : <NewName {...props} entry={one} />;
    case "share":
      return one === undefined ? null : (
        <ShareDialog
          entry={one}
          place={{ root, path: below(path, one.name) }}
          onChange={acts.refresh}
          onClose={onClose}
        />
      );
    default:
      return null;
  }
}

function NewFolder({ acts, onClose }: FolderDialogsProps): ReactNode {
  const { root, path } = acts.here;
  return (
    <TextDialog
      title="New folder"
      label="Name"
      first=""
      button="Make"
      {...ONE_NAME}
      hint={windowsTrouble}
      onClose={onClose}
      act={async (name) => {
        await door.makeFolder({ root, path: below(path, name) });
        onClose();
        acts.refresh();
      }}
    />
  );
}

function NewName({
  acts,
  entry,
  onSelect,
  onClose,
}: FolderDialogsProps & { readonly entry: FileEntry }): ReactNode {
  return (
    <TextDialog
      title="Rename"
      label="New name"
      first={entry.name}
      button="Rename"
      {...ONE_NAME}
      hint={windowsTrouble}
      onClose={onClose}
      act={async (name) => {
        onSelect(new Set([await rename(acts, entry, name)]));
        onClose();
      }}
    />
  );
}

function Look({ acts, entries, isWhole, shown: first, onClose }: FolderDialogsProps): ReactNode {
  const [shown, setShown] = useState(first);
  const files = entries.filter(({ kind }) => kind === "file");
  const at = files.findIndex(({ name }) => name === shown);
  const entry = files[at];
  if (entry === undefined)
    return isWhole ? (
      <Dialog title={shown ?? ""} onClose={onClose}>
        <p>This file is not in the folder any more.</p>
      </Dialog>
    ) : null;
  const { root, path } = acts.here;
  return (
    <Preview
      entry={entry}
      place={{ root, path: below(path, entry.name) }}
      onClose={onClose}
      onStep={(by) => setShown(files[(at + by + files.length) % files.length]?.name)}
    />
  );
}
