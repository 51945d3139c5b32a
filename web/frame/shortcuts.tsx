// Keyboard shortcuts: "?" opens their list, "g" and a letter a page, "/" the page's search; optional.
import { Kbd, Modal, Switch } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { useIsOperator } from "../live/session.ts";
import { PLACES } from "./places.ts";

const KEY = "grove-single-keys";
/** Time for the letter after "g". */
const LETTER_MS = 1_500;

/** Listens to keys and shows their list. */
export function Shortcuts(): ReactNode {
  const [isOpen, { open, close }] = useDisclosure(false);
  const [areOn, setOn] = useState(() => kept() !== "off");
  useKeys(areOn, open);
  const change = (on: boolean): void => {
    setOn(on);
    try {
      if (on) localStorage.removeItem(KEY);
      else localStorage.setItem(KEY, "off");
    } catch {
      // Without storage the choice lasts as long as the page.
    }
  };
  return (
    <Modal
      lockScroll={false}
      opened={isOpen}
      onClose={close}
      title="Keys"
      closeButtonProps={{ "aria-label": "Close" }}
    >
      <KeyList />
      <Switch
        mt="md"
        label="Single keys are on"
        description="Turn them off when a program that types for you sets them off. Ctrl K stays."
        checked={areOn}
        onChange={(event) => change(event.currentTarget.checked)}
      />
    </Modal>
  );
}

function kept(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function useKeys(areOn: boolean, openList: () => void): void {
  const isOperator = useIsOperator();
  const [, navigate] = useLocation();
  const waitsUntil = useRef(0);
  useEffect(() => {
    if (!areOn) return;
    const onKeyDown = (event: KeyboardEvent): void => {
      if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        event.defaultPrevented ||
        isTyping(event.target)
      ) {
        return;
      }
      if (event.timeStamp < waitsUntil.current) {
        waitsUntil.current = 0;
        const place = PLACES.find(
          ({ letter, operator }) => letter === event.key && (operator !== true || isOperator),
        );
        if (place !== undefined) navigate(place.path);
      } else if (event.key === "g") waitsUntil.current = event.timeStamp + LETTER_MS;
      else if (event.key === "?") openList();
      else if (event.key === "/") focusSearch(event);
    };
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, [areOn, isOperator, navigate, openList]);
}

/** Keys typed into a field are no shortcuts. */
function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable ||
      target.closest("input, textarea, select, [role=dialog], [role=menu]") !== null)
  );
}

function focusSearch(event: KeyboardEvent): void {
  const search = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (search === null) return;
  event.preventDefault();
  search.focus();
}

function KeyList(): ReactNode {
  const isOperator = useIsOperator();
  const shown = PLACES.filter(({ operator }) => operator !== true || isOperator);
  const keys: readonly (readonly [readonly string[], string])[] = [
    [["Ctrl", "K"], "go to any page or node by typing"],
    [["?"], "show this list"],
    [["/"], "search on this page"],
    [["Esc"], "close what is open"],
    ...shown.map(({ letter, label }) => [["g", letter], label] as const),
  ];
  return (
    <dl className="key-list">
      {keys.map(([names, label]) => (
        <div key={label}>
          <dt>
            {names.map((name) => (
              <Kbd key={name}>{name}</Kbd>
            ))}
          </dt>
          <dd>{label}</dd>
        </div>
      ))}
    </dl>
  );
}
