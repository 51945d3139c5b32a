// Chooses the time span of a page's charts, kept in the address.
import { Select, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useAddressSearch } from "../live/address-search.ts";
import { SPANS, useSpan } from "../live/long-history.ts";

const DAY_SECONDS = 86_400;

/** The choice; "around a moment" starts with this time yesterday. */
export function SpanPicker(): ReactNode {
  const { set } = useAddressSearch();
  const span = useSpan();
  const [yesterday] = useState(() => Math.floor(Date.now() / 1_000) - DAY_SECONDS);
  return (
    <div className="filter-bar">
      <Select
        aria-label="Which time"
        size="xs"
        allowDeselect={false}
        data={SPANS.map(({ value, label }) => ({ value, label }))}
        value={span.name}
        onChange={(value) => set("span", value === "hour" ? null : value)}
      />
      {span.name === "around" ? (
        <TextInput
          type="datetime-local"
          aria-label="The moment"
          size="xs"
          defaultValue={localInput(span.at ?? yesterday)}
          onChange={(event) => {
            const ms = new Date(event.currentTarget.value).getTime();
            if (Number.isFinite(ms) && ms > 0) set("at", String(Math.floor(ms / 1_000)));
          }}
        />
      ) : null}
    </div>
  );
}

/** A moment for a datetime-local field: in the viewer's zone, to the minute. */
function localInput(unixSeconds: number): string {
  const date = new Date(unixSeconds * 1_000);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}
