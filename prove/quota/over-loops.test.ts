// The short form of the rig that fills quotas, against a node whose connections two threads serve (F10, D26).
import { testShortForm } from "#prove/short-form.ts";
import { quota } from "./rig.ts";

process.env["GROVE_RIG_LOOPS"] = "2";
testShortForm(quota);
