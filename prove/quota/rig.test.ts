// The short form of the rig that fills quotas with many streams at once (F10).
import { testShortForm } from "#prove/short-form.ts";
import { quota } from "./rig.ts";

testShortForm(quota);
