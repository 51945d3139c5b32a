// Entry file of the process that attacks a door: apart, so that its work does not slow the honest clients.
import { DOOR_ATTACKS } from "./door-kinds.ts";
import { takeOrders } from "./orders.ts";

takeOrders(DOOR_ATTACKS);
