// A dialog with all pages and nodes by name, opened with Ctrl K or ⌘ K.
import { Button, Kbd, Modal, TextInput, VisuallyHidden } from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { type KeyboardEvent, type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { useCluster } from "../live/cluster.ts";
import { useIsOperator } from "../live/session.ts";
import { PLACES } from "./places.ts";

interface Hit {
  readonly path: string;
  readonly label: string;
  readonly kind: string;
}

const SHOWN = 12;

/** The button in the header, and its dialog. */
export function CommandPalette(): ReactNode {
  const [isOpen, { open, close }] = useDisclosure(false);
  useHotkeys([["mod+K", open]]);
  return (
    <>
      <Button
        variant="default"
        size="compact-sm"
        onClick={open}
        rightSection={
          <Kbd size="xs" className="wide-only" aria-hidden="true">
            Ctrl K
          </Kbd>
        }
      >
        <span className="wide-only">Go to …</span>
        <span className="narrow-only">
          <VisuallyHidden>Go to a page or node</VisuallyHidden>
          <span aria-hidden="true">⌕</span>
        </span>
      </Button>
      <Modal
        lockScroll={false}
        opened={isOpen}
        onClose={close}
        title="Go to"
        closeButtonProps={{ "aria-label": "Close" }}
        size="lg"
      >
        <Search onDone={close} />
      </Modal>
    </>
  );
}

function Search({ onDone }: { readonly onDone: () => void }): ReactNode {
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState(0);
  const [, navigate] = useLocation();
  const hits = useHits(text);
  const go = (hit: Hit | undefined): void => {
    if (hit === undefined) return;
    navigate(hit.path);
    onDone();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter") go(hits[chosen]);
    else if (event.key === "ArrowDown") setChosen(Math.min(chosen + 1, hits.length - 1));
    else if (event.key === "ArrowUp") setChosen(Math.max(chosen - 1, 0));
    else return;
    event.preventDefault();
  };
  return (
    <>
      <TextInput
        aria-label="Page or node"
        placeholder="A page, or the name of a node"
        data-autofocus
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-hits"
        aria-activedescendant={hits[chosen] === undefined ? undefined : `palette-hit-${chosen}`}
      />
      <div id="palette-hits" role="listbox" aria-label="Places" style={{ marginTop: 8 }}>
        {hits.map((hit, index) => (
          // The input above handles the keyboard, as in a combobox.
          <div
            key={hit.path}
            id={`palette-hit-${index}`}
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
            className="palette-hit"
            onMouseEnter={() => setChosen(index)}
            onClick={() => go(hit)}
            onKeyDown={onKeyDown}
          >
            <span>{hit.label}</span>
            <span className="quiet">{hit.kind}</span>
          </div>
        ))}
      </div>
      {hits.length === 0 ? <p className="quiet">No page or node has “{text}” in its name.</p> : null}
    </>
  );
}

function useHits(text: string): readonly Hit[] {
  const isOperator = useIsOperator();
  const { cluster } = useCluster();
  const wanted = text.trim().toLowerCase();
  const places = PLACES.filter(
    ({ operator, label, words }) =>
      (operator !== true || isOperator) && `${label} ${words}`.toLowerCase().includes(wanted),
  ).map(({ path, label }) => ({ path, label, kind: "page" }));
  const nodes = (cluster?.nodes ?? [])
    .filter(({ name, id }) => name.toLowerCase().includes(wanted) || id.toLowerCase().includes(wanted))
    .slice(0, SHOWN)
    .map(({ id, name }) => ({ path: `/nodes/${encodeURIComponent(id)}`, label: name, kind: "node" }));
  return [...places, ...nodes].slice(0, SHOWN);
}
