// The short form of the rig that makes storage calls fail.
import { testShortForm } from "#prove/short-form.ts";
import { ioFaults } from "./rig.ts";

testShortForm(ioFaults);
