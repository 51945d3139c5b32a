// The attacker as a process of its own, so that its work does not stand in the way of the honest client's: takes orders from its parent.
import { constants, setPriority } from "node:os";
import { ATTACKS, type AttackPlace, type Struck } from "./kinds.ts";

/** An order: attack so for so long. */
export type Order = Omit<AttackPlace, "isOver"> & { readonly kind: string; readonly ms: number };

setPriority(constants.priority.PRIORITY_LOW);
process.on("message", (order: Order) => {
  const endMs = performance.now() + order.ms;
  const attack = ATTACKS[order.kind];
  const place = { ...order, isOver: () => performance.now() >= endMs };
  const struck: Promise<Struck> =
    attack === undefined ? Promise.reject(new Error("no such attack")) : attack(place);
  struck.then(
    (result) => process.send?.(result),
    (error: unknown) => process.send?.({ strokes: 0, complaint: `the attack failed: ${String(error)}` }),
  );
});
process.on("disconnect", () => process.exit(0));
