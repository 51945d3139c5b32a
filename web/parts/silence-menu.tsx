// Silences an alert until a chosen time: an hour, tomorrow morning, a week, or a typed one.
import { Button, Menu, Modal } from "@mantine/core";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { useNowMs } from "../live/cluster.ts";
import { UntilInput, understood } from "./until-input.tsx";

/** A button with the choices; `of` names the silenced subject. */
export function SilenceMenu({
  of,
  isBusy,
  onChoose,
}: {
  readonly of: string;
  readonly isBusy?: boolean;
  /** Gets a text, which the console counts from its own clock. */
  readonly onChoose: (end: string) => void;
}): ReactNode {
  const [isPicking, setPicking] = useState(false);
  return (
    <>
      <Menu position="bottom-start">
        <Menu.Target>
          <Button variant="default" size="compact-sm" loading={isBusy === true} aria-label={`Silence ${of}`}>
            Silence ▾
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => onChoose("1h")}>For 1 hour</Menu.Item>
          <Menu.Item onClick={() => onChoose("4h")}>For 4 hours</Menu.Item>
          <Menu.Item onClick={() => onChoose("tomorrow 09:00")}>Until tomorrow, 09:00</Menu.Item>
          <Menu.Item onClick={() => onChoose("7d")}>For a week</Menu.Item>
          <Menu.Item onClick={() => setPicking(true)}>For, or until …</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal
        lockScroll={false}
        opened={isPicking}
        onClose={() => setPicking(false)}
        title={`Silence ${of}`}
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <SilenceForm
          onChoose={(end) => {
            setPicking(false);
            onChoose(end);
          }}
        />
      </Modal>
    </>
  );
}

function SilenceForm({ onChoose }: { readonly onChoose: (end: string) => void }): ReactNode {
  const [text, setText] = useState("tomorrow 09:00");
  const isSound = typeof understood(text, useNowMs()) === "number";
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isSound) onChoose(text);
  };
  return (
    <form onSubmit={submit} className="stack">
      <UntilInput value={text} onChange={setText} />
      <p className="quiet">Alerts are still raised and listed; nobody is told of them until then.</p>
      <div>
        <Button type="submit" disabled={!isSound}>
          Silence
        </Button>
      </div>
    </form>
  );
}
