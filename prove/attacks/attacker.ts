// The attacker as a process of its own, so that its work does not stand in the way of the honest client's.
import { ATTACKS } from "./kinds.ts";
import { takeOrders } from "./orders.ts";

takeOrders(ATTACKS);
