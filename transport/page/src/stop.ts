// The emergency stop: to all sites in its reach at once, again and again until each has answered.

import { signal } from "@preact/signals";
import { abortAll, Fault } from "./rpc";
import { pauseAll } from "./live";
import type { Aged, Scalar, Site } from "./site";

/** What came of the stop at one site. */
export interface Stopping {
	site: Site;
	asked: number;               // how often
	since: number;               // performance.now() of the press
	took?: number;               // milliseconds to the answer
	fault?: string;              // kind of the last failure
	says?: string;               // what the site said of it
	outputs?: { output: string; value: Scalar; safe: Scalar; going_to?: Scalar; set?: Aged; measured?: Aged }[];
}

export const stopping = signal<Stopping[]>([]);

const first = 2_500, longest = 2_000;

/** Stops sites. It first frees the browser's connections. */
export function stop(reach: Site[]): void {
	pauseAll(1500);
	abortAll();
	const since = performance.now();
	stopping.value = reach.map(site => ({ site, asked: 0, since }));
	for (const s of reach) void one(s, since);
}

async function one(site: Site, since: number): Promise<void> {
	const note = (w: Partial<Stopping>) => {
		stopping.value = stopping.value.map(x => x.site === site && x.since === since ? { ...x, ...w } : x);
	};
	for (let n = 1; stopping.value.some(x => x.site === site && x.since === since); n++) {
		note({ asked: n });
		try {
			const r = await site.conn.tool<any>("emergency_stop", {}, { timeout: first });
			note({ took: performance.now() - since, outputs: r.outputs ?? [], fault: undefined });
			site.stopped.value = true;
			if (stopping.value.every(x => x.took)) pauseAll(0); // the streams go on
			return;
		} catch (e) {
			const kind = e instanceof Fault ? e.kind : "internal";
			note({ fault: kind, says: kind === "unknown_outcome" && e instanceof Fault ? e.message : undefined });
			if (kind === "denied" || kind === "missing" || kind === "invalid") return;
		}
		await new Promise(done => setTimeout(done, Math.min(longest, 250 * n)));
	}
}
