// Numbers with their units, as people write them.

import { age, locale, number } from "./format";

const units: Record<string, string> = {
	"1": "", Cel: "°C", "[degF]": "°F", "%": "%", "m/s2": "m/s²", "W/m2": "W/m²", "m3": "m³", "m3/h": "m³/h", "ug/m3": "µg/m³", "mg/m3": "mg/m³", Ohm: "Ω",
	deg: "°", "[ppm]": "ppm", "[ppb]": "ppb", "uS/cm": "µS/cm", "umol/m2/s": "µmol/m²s", "[in_i'Hg]": "inHg", "bit/s": "bit/s", "/min": "/min",
};

/** A number with its unit as people write it; digits is how many it may have after the point. */
export function quantity(v: number, unit = "", digits?: number): [string, string] {
	if (unit === "By") {
		const k = v < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(v) / 10));
		return [number(v / 1024 ** k, k ? 1 : 0), ["B", "KiB", "MiB", "GiB", "TiB"][k]!];
	}
	const by = scale(v, unit);
	if (by > 1) return [number(v / by, 1, true), "hPa"];
	if (unit === "s" && v > 1e9) return [new Date(v * 1000).toLocaleDateString(locale), ""];
	if (unit === "s" && v >= 60) return [age(v), ""];
	const size = Math.abs(v), shown = Object.hasOwn(units, unit) ? units[unit]! : unit.slice(0, 12);
	return [size >= 1e12 ? v.toExponential(3) : number(v, digits ?? (size >= 1000 ? 0 : size >= 10 ? 1 : 2)), shown];
}

/** How many of the site's unit are one of the unit in which a value is shown: the air's pressure is in hPa. */
export const scale = (v: number, unit?: string): number => unit === "Pa" && Math.abs(v) >= 10_000 ? 100 : 1;

/** A number beside another one, whose unit is said: with its own where that differs. */
export function beside(v: number, unit: string | undefined, other: number): string {
	const [n, u] = quantity(v, unit);
	return u && u !== quantity(other, unit)[1] ? n + " " + u : n;
}
