// The past of points, kept for as long as it does not change much.

import { signal, type Signal } from "@preact/signals";
import { turns } from "./rpc";
import type { Scalar, Site } from "./site";

export interface Step { time: string; min: number; mean: number; max: number; last: number; good?: number }
export interface Change { time: string; value?: Scalar; held_by?: string; because?: string }
export interface Past { point: string; unit?: string; step_seconds?: number; min?: number; mean?: number; max?: number; steps?: Step[]; changes?: Change[]; cut_off?: boolean }

interface Kept { past: Signal<Past | undefined>; fault: Signal<unknown>; until: number }

const kept = new Map<string, Kept>();
const most = 200;

// Two questions at a time: a browser has six connections to a host, and a board one processor.
const turn = turns(2);

/** The hours of a point before a time in about so many steps. Without a time they are the last ones, which are asked
 *  for again when they are a step old. */
export function past(s: Site, point: string, hours: number, steps: number, end?: number): Kept {
	const key = [s.name, point, hours, steps, end].join("\n");
	let k = kept.get(key);
	if (!k) {
		kept.set(key, k = { past: signal(undefined), fault: signal(undefined), until: 0 });
		if (kept.size > most) kept.delete(kept.keys().next().value!);
	}
	const own = k, t = performance.now();
	if (t > own.until) {
		own.until = end ? Infinity : t + Math.max(30_000, hours * 3600_000 / steps);
		const to = end && new Date(end).toISOString();
		void turn(() => s.conn.tool<Past>("read_history", { point, hours, steps, to })).then(
			p => { own.past.value = p; own.fault.value = undefined; },
			e => { own.fault.value = e; own.until = performance.now() + 5_000; });
	}
	return own;
}
