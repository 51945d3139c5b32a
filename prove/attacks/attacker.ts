// Entry file of the attacker's process: apart, so that its work does not slow the honest client.
import { ATTACKS } from "./kinds.ts";
import { takeOrders } from "./orders.ts";

takeOrders(ATTACKS);
