// Silences something until a moment that is picked: in an hour, tomorrow morning, next week, or any.
import { Button, Menu, Modal, TextInput } from "@mantine/core";
import { type ReactNode, type SubmitEvent, useState } from "react";
import { formatMoment } from "../words/time.ts";

const HOUR_SECONDS = 3_600;

/** A button with the choices; `of` says what is silenced. */
export function SilenceMenu({
  of,
  isBusy,
  onChoose,
}: {
  readonly of: string;
  readonly isBusy?: boolean;
  /** Unix seconds at which it ends. */
  readonly onChoose: (endsAt: number) => void;
}): ReactNode {
  const [isPicking, setPicking] = useState(false);
  const inHours = (hours: number): void => onChoose(unixSeconds(new Date()) + hours * HOUR_SECONDS);
  return (
    <>
      <Menu position="bottom-start">
        <Menu.Target>
          <Button variant="default" size="compact-sm" loading={isBusy === true} aria-label={`Silence ${of}`}>
            Silence ▾
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => inHours(1)}>For 1 hour</Menu.Item>
          <Menu.Item onClick={() => inHours(4)}>For 4 hours</Menu.Item>
          <Menu.Item onClick={() => onChoose(unixSeconds(tomorrowMorning()))}>
            Until tomorrow, 09:00
          </Menu.Item>
          <Menu.Item onClick={() => inHours(7 * 24)}>For a week</Menu.Item>
          <Menu.Item onClick={() => setPicking(true)}>Until …</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <Modal
        lockScroll={false}
        opened={isPicking}
        onClose={() => setPicking(false)}
        title={`Silence ${of}`}
        closeButtonProps={{ "aria-label": "Close" }}
      >
        <Moment
          onChoose={(endsAt) => {
            setPicking(false);
            onChoose(endsAt);
          }}
        />
      </Modal>
    </>
  );
}

function Moment({ onChoose }: { readonly onChoose: (endsAt: number) => void }): ReactNode {
  const [text, setText] = useState(() => localText(tomorrowMorning()));
  const [isSound, setSound] = useState(true);
  const moment = new Date(text);
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (isSound) onChoose(unixSeconds(moment));
  };
  return (
    <form onSubmit={submit} className="stack">
      <TextInput
        type="datetime-local"
        label="Until"
        data-autofocus
        value={text}
        error={isSound ? undefined : "Choose a moment that is yet to come"}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setSound(new Date(event.currentTarget.value).getTime() > Date.now());
        }}
      />
      <p className="quiet">
        Alerts are still raised and listed; nobody is told of them
        {isSound ? ` until ${formatMoment(unixSeconds(moment))}` : ""}.
      </p>
      <div>
        <Button type="submit" disabled={!isSound}>
          Silence
        </Button>
      </div>
    </form>
  );
}

function tomorrowMorning(): Date {
  const morning = new Date();
  morning.setDate(morning.getDate() + 1);
  morning.setHours(9, 0, 0, 0);
  return morning;
}

function unixSeconds(moment: Date): number {
  return Math.floor(moment.getTime() / 1_000);
}

/** As an input for local times takes it: "2026-11-22T09:00". */
function localText(moment: Date): string {
  const two = (number: number): string => String(number).padStart(2, "0");
  const day = `${moment.getFullYear()}-${two(moment.getMonth() + 1)}-${two(moment.getDate())}`;
  return `${day}T${two(moment.getHours())}:${two(moment.getMinutes())}`;
}
