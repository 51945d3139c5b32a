// Silences: what is told to nobody for a while. Alerts are still recorded.
import { Button, NumberInput, Select, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, type SubmitEvent, useState } from "react";
import type { Silence } from "#webapi/notice.ts";
import { call } from "../live/api.ts";
import { queryClient } from "../live/query-client.ts";
import { formatMoment } from "../words/time.ts";
import { Failed } from "./page-state.tsx";

const KEY = ["silences"];
const again = (): Promise<void> => queryClient.invalidateQueries({ queryKey: KEY });

/** The list, and a form for one more. */
export function Silences(): ReactNode {
  const query = useQuery({
    queryKey: KEY,
    queryFn: ({ signal }) => call<{ silences: Silence[] }>("/api/silences", { signal }),
  });
  const end = useMutation({
    mutationFn: (id: string) => call(`/api/silences/${encodeURIComponent(id)}`, { method: "DELETE" }),
    onSuccess: again,
  });
  const current = query.data?.silences.filter(({ state }) => state !== "expired") ?? [];
  return (
    <section aria-labelledby="silences">
      <h2 id="silences">Silences</h2>
      {query.error === null ? null : <Failed what="The silences" error={query.error} />}
      {current.length === 0 ? (
        <p className="quiet">
          None. A silence keeps notices of matching alerts from being sent; the alerts themselves stay listed.
        </p>
      ) : (
        <ul>
          {current.map((silence) => (
            <li key={silence.id}>
              {silence.matchers
                .map(({ name, value, is_regex: isRegex }) => `${name} ${isRegex ? "matches" : "is"} ${value}`)
                .join(" and ")}
              , {silence.state === "pending" ? `from ${formatMoment(silence.starts_at)} ` : ""}until{" "}
              {formatMoment(silence.ends_at)}
              {silence.comment === "" ? "" : `: ${silence.comment}`}{" "}
              <Button variant="default" size="compact-xs" onClick={() => end.mutate(silence.id)}>
                End now
              </Button>
            </li>
          ))}
        </ul>
      )}
      <NewSilence />
    </section>
  );
}

function NewSilence(): ReactNode {
  const [name, setName] = useState("node_id");
  const [value, setValue] = useState("");
  const [hours, setHours] = useState(2);
  const [comment, setComment] = useState("");
  const make = useMutation({
    mutationFn: () =>
      call("/api/silences", {
        method: "POST",
        body: {
          matchers: [{ name, value, is_regex: false }],
          ends_at: Math.floor(Date.now() / 1_000) + Math.round(hours * 3_600),
          comment,
        },
      }),
    onSuccess: async () => {
      setValue("");
      setComment("");
      await again();
    },
  });
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    make.mutate();
  };
  return (
    <form onSubmit={submit} style={{ display: "flex", gap: 12, flexWrap: "wrap", alignItems: "end" }}>
      <Select
        label="Silence alerts whose"
        data={[
          { value: "node_id", label: "node id" },
          { value: "type", label: "type" },
          { value: "severity", label: "severity" },
          { value: "username", label: "user" },
        ]}
        value={name}
        allowDeselect={false}
        onChange={(next) => setName(next ?? "node_id")}
      />
      <TextInput
        label="is"
        required
        value={value}
        onChange={(event) => setValue(event.currentTarget.value)}
      />
      <NumberInput
        label="for hours"
        min={0.25}
        max={720}
        w={96}
        value={hours}
        onChange={(next) => setHours(typeof next === "number" ? next : 2)}
      />
      <TextInput
        label="because"
        value={comment}
        onChange={(event) => setComment(event.currentTarget.value)}
      />
      <Button type="submit" variant="default" loading={make.isPending}>
        Silence
      </Button>
      {make.error === null ? null : <p role="alert">{make.error.message}</p>}
    </form>
  );
}
