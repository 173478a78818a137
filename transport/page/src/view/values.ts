// Values of a site in words, whatever it sends.

import { quantity } from "../quantity";
import { t } from "./words";

/** A value in words: on, 45 %, –. */
export function worded(v: unknown, unit?: unknown): string {
	if (typeof v === "boolean") return t(v ? "on" : "off");
	if (typeof v === "number" && Number.isFinite(v)) return quantity(v, typeof unit === "string" ? unit : "").filter(x => x).join(" ");
	return typeof v === "string" && v ? v.slice(0, 100) : "–";
}

/** The objects of a list; of anything else none. */
export const list = (v: unknown): any[] => Array.isArray(v) ? v.filter(x => x && typeof x === "object") : [];

/** A number of seconds above 0; of anything else undefined. */
export const seconds = (v: unknown) => typeof v === "number" && v > 0 && v < 1e9 ? v : undefined;
