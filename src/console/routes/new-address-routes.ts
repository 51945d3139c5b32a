// People whose e-mail address has changed: who waits, and an operator's word on it (D34).
import { type App, operatorOf } from "#console/http/route.ts";
import type { NewAddressService } from "#console/services/new-address-service.ts";
import { addressDecision, newAddressList } from "#wire/webapi/new-address.ts";
import { usernameOf } from "./user-routes.ts";

const tags = ["users"];
const config = { auth: "operator" } as const;

/** Registers the routes. */
export function newAddressRoutes(app: App, { service }: { readonly service: NewAddressService }): void {
  app.get(
    "/api/new-addresses",
    {
      config,
      schema: {
        operationId: "listNewAddresses",
        summary:
          "People who have signed in under another address than they are known by, and confirmed changes",
        tags,
        response: { 200: newAddressList },
      },
    },
    () => service.list(),
  );
  for (const [decision, operationId, summary] of [
    [
      "confirm",
      "confirmNewAddress",
      "Give all that is a person's to their new address, and end their sessions",
    ],
    ["refuse", "refuseNewAddress", "Forget a new address; the person may come with it again"],
  ] as const) {
    app.post(
      `/api/new-addresses/${decision}`,
      {
        config,
        schema: { operationId, summary, tags, body: addressDecision, response: { 200: newAddressList } },
      },
      (request) => {
        const { from, to } = request.body;
        const actor = { id: operatorOf(request).id, requestId: request.id };
        return service.decide(decision, { from: usernameOf(from), to: usernameOf(to) }, actor);
      },
    );
  }
}
