// The geometry of a chart: where its steps are and what its lines are, whoever draws them.

import type { Change, Past, Step } from "./history";
import type { Scalar } from "./site";
import { locale, timeOf } from "./format";

export interface Slot { at: number; step?: Step }

/** The steps of a past in their places; a place without a good reading is a gap. */
export function slots(p: Past, from: number, to: number, most = 1000): Slot[] {
	const size = 1000 * (p.step_seconds ?? 60), by = new Map((p.steps ?? []).map(x => [Math.floor(Date.parse(x.time) / size), x]));
	const out: Slot[] = [];
	for (let i = Math.floor(from / size); i * size < to && out.length < most; i++) {
		const s = by.get(i);
		out.push({ at: i * size, step: s && s.good !== 0 ? s : undefined });
	}
	return out;
}

/** The places from the first reading on. */
export const since = (of: Slot[]): Slot[] => of.slice(Math.max(0, of.findIndex(s => s.step)));

/** The places without a good reading: not those before the first, and not the step that goes on. */
export function gaps(of: Slot[], to: number): [number, number][] {
	const out: [number, number][] = [], first = of.findIndex(r => r.step);
	for (let i = Math.max(0, first); i < of.length - 1; i++) {
		const { at, step } = of[i]!, end = of[i + 1]!.at, last = out.at(-1);
		if (step || first < 0) continue;
		if (last && last[1] === at) last[1] = end;
		else out.push([at, Math.min(end, to)]);
	}
	return out;
}

/** When an output was away from safe: from, to, and how far, as a part of its range. */
export type Span = [from: number, to: number, part: number];

export function spans(changes: Change[], safe: Scalar, range: number, from: number, to: number): Span[] {
	const out: Span[] = [];
	changes.forEach((c, i) => {
		const at = Math.max(from, Date.parse(c.time)), next = changes[i + 1], end = next ? Math.min(to, Date.parse(next.time)) : to;
		if (c.value === undefined || c.value === null || c.value === safe || end <= at) return;
		out.push([at, end, typeof c.value === "number" ? Math.min(1, Math.abs(c.value - Number(safe ?? 0)) / range) : 1]);
	});
	return out;
}

/** Round marks of an axis. */
export function ticks(low: number, high: number, about: number): number[] {
	const raw = (high - low) / about || 1, ten = 10 ** Math.floor(Math.log10(raw));
	const step = ten * ([1, 2, 5, 10].find(x => x * ten >= raw) ?? 10);
	const out: number[] = [];
	for (let i = Math.floor(low / step); i <= Math.ceil(high / step); i++) out.push(+(i * step).toPrecision(12));
	return out;
}

export const hour = 3600_000, day = 24 * hour;

/** Marks of the time axis, at round local times. */
export function times(from: number, to: number, about: number): [number, string][] {
	const span = to - from, step = [10 * 60_000, 15 * 60_000, 30 * 60_000, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day, 2 * day, 7 * day, 14 * day, 30 * day, 61 * day]
		.find(x => span / x <= about) ?? 61 * day;
	const out: [number, string][] = [], d = new Date(from);
	d.setHours(0, 0, 0, 0);
	for (let n = 0; d.getTime() <= to && n < 400; n++) {
		const at = d.getTime();
		if (at >= from) out.push([at, step < day ? timeOf(d) : d.toLocaleDateString(locale, step < 30 * day ? { day: "numeric", month: "numeric" } : { month: "short" })]);
		if (step < day) d.setTime(at + step);
		else d.setDate(d.getDate() + step / day);
	}
	return out;
}

/** The paths of the mean and of what lies between minimum and maximum. x and y are the places of a time and of a value. */
export function lines(of: Slot[], size: number, x: (at: number) => number, y: (v: number) => number): { line: string; band: string } {
	const f = (v: number) => v.toFixed(1);
	let line = "", band = "", run: Slot[] = [];
	const flush = () => {
		if (!run.length) return;
		line += "M" + run.map(r => f(x(r.at + size / 2)) + " " + f(y(r.step!.mean))).join("L") + (run.length === 1 ? "m-2 0h4" : "");
		band += "M" + run.map(r => f(x(r.at + size / 2)) + " " + f(y(r.step!.max))).join("L") + "L" + run.toReversed().map(r => f(x(r.at + size / 2)) + " " + f(y(r.step!.min))).join("L") + "z";
		run = [];
	};
	for (const r of of) {
		if (r.step) run.push(r);
		else flush();
	}
	flush();
	return { line, band };
}

/** The range of an axis, and its marks. A line that hardly moves is not blown up. */
export function axisOf(low: number, high: number, about: number): { low: number; high: number; marks: number[] } {
	if (low > high) [low, high] = [0, 1];
	const least = Math.max(Math.abs(high) * .02, 1e-9);
	if (high - low < least) [low, high] = [low - least, high + least];
	const marks = ticks(low, high, about);
	return { low: marks[0]!, high: marks.at(-1)!, marks };
}
