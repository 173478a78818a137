// What is known of the sites, as signals. live.ts fills it from the streams.

import { computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { deviceOf, named, short } from "./names";
import { Conn, Fault } from "./rpc";

export { deviceOf, named, short } from "./names";

export type Scalar = number | boolean | string | null | undefined;

/** A point, as list_points tells it. */
export interface Point {
	point: string; kind: string; name?: string; unit?: string; description?: string; device?: string; min?: number; max?: number; values?: Scalar[];
	safe?: Scalar; max_seconds?: number; limits?: string; confirm?: string;
}

/** What is told of an output beside its value. */
export interface Output {
	going_to?: Scalar; held_by?: string; seconds_left?: number; rest_seconds?: number; needs?: string; returned_because?: string; effect?: "confirmed" | "not confirmed" | "failed";
	fault?: string; state?: number; set?: Aged; measured?: Aged; // both, of one that is read back
}

/** A value and how old it was when it was told. */
export interface Aged { value: Scalar; age_seconds: number }

/** The latest reading of a point. at is when it was read and came when it was told, in performance.now(). */
export interface Reading { value?: Scalar; at: number; came: number; quality: string; why?: string; output?: Output }

/** A call that waits for an owner. */
export interface Approval { handle: string; caller: string; tool: string; arguments: string; seconds_left: number; would_hold_seconds?: number; came: number }

export interface Status {
	site: string; version?: string; simulated?: boolean; emergency_stop?: boolean;
	devices?: { device: string; model?: string; faults?: string[] }[];
}

/** performance.now(), each second while the page is visible. */
export const now = signal(performance.now());

/** Without a word for this long, a site is out of contact. */
export const silence = 12_000;

export class Site {
	readonly points = signal<Point[] | undefined>(undefined);
	readonly status = signal<Status | undefined>(undefined);
	readonly approvals = signal<Approval[]>([]);
	/** The handles of programs that ask for something, as the view of what waits showed them last. */
	readonly programs = signal<string[]>([]);
	readonly stopped = signal(false);
	/** Whether the owner's methods answer here. */
	readonly owner = signal(false);
	readonly contact = signal(performance.now());
	/** Whether anything was ever heard. */
	readonly known = signal(false);
	/** Why nothing comes, as a kind of fault; "" while it does. */
	readonly trouble = signal("");
	/** How long nothing was heard, in whole seconds; 0 in contact. */
	readonly gone: ReadonlySignal<number> = computed(() => {
		const quiet = now.value - this.contact.value;
		return quiet > silence ? Math.floor(quiet / 1000) : 0;
	});
	private readonly values = new Map<string, Signal<Reading | undefined>>();
	private readonly pointsNow = computed(() => this.points.value ?? []);
	/** The outputs, and those of them that are away from safe or not known to be there. */
	readonly outputs: ReadonlySignal<Point[]> = computed(() => this.pointsNow.value.filter(isOutput));
	readonly away: ReadonlySignal<Point[]> = computed(() => this.outputs.value.filter(p => awayFrom(p, this.value(p.point).value)));
	readonly unwell: ReadonlySignal<Point[]> = computed(() => this.pointsNow.value.filter(p => {
		const r = this.value(p.point).value;
		return r && r.quality !== "good";
	}));

	/** you is the principal that this person is there, and key the site's, where that is proved. */
	constructor(readonly name: string, readonly conn: Conn, owner: boolean, readonly you: string, readonly key?: string) {
		this.owner.value = owner;
	}

	value(address: string): Signal<Reading | undefined> {
		let s = this.values.get(address);
		if (!s) this.values.set(address, s = signal<Reading | undefined>(undefined));
		return s;
	}

	point(address: string): Point | undefined {
		return this.pointsNow.value.find(p => p.point === address);
	}

	/** The name of a point for people: its device's where it is the only point of that, and both where
	 *  another point has the same. */
	title(address: string): string {
		const own = this.point(address)?.name;
		if (own && typeof own === "string") return own;
		const device = deviceOf(address), name = short(address), others = this.pointsNow.value.filter(p => p.point !== address);
		return named(device && !others.some(p => deviceOf(p.point) === device) ? device
			: others.some(p => short(p.point) === name) ? `${device} ${name}` : name);
	}

	/** All that is known of values, as a snapshot that apply takes. Its table is that of the site, to which what the
	 *  site says next refers. */
	snapshot(): object {
		const t = performance.now();
		return {
			points: this.table.map(point => ({ point })),
			readings: this.table.flatMap((point, i) => {
				const r = this.value(point).peek(), spent = r ? (t - r.came) / 1000 : 0;
				return r ? [{
					i, value: r.value, age_seconds: (t - r.at) / 1000, quality: r.quality, why: r.why,
					output: r.output && {
						...r.output, seconds_left: less(r.output.seconds_left, spent), rest_seconds: less(r.output.rest_seconds, spent),
						set: r.output.set && { ...r.output.set, age_seconds: r.output.set.age_seconds + spent },
						measured: r.output.measured && { ...r.output.measured, age_seconds: r.output.measured.age_seconds + spent },
					},
				}] : [];
			}),
			approvals: this.approvals.peek().map(a => ({ ...a, seconds_left: less(a.seconds_left, (t - a.came) / 1000) })),
			emergency_stop: this.stopped.peek(),
		};
	}

	private table: string[] = [];

	/** Takes the parameters of a notification of values. */
	apply(p: any): void {
		const came = performance.now();
		if (Array.isArray(p.points)) {
			this.table = p.points.map((x: any) => String(x.point));
			for (const [point, s] of this.values) if (!this.table.includes(point)) s.value = undefined;
		}
		for (const r of p.readings ?? []) {
			const point = this.table[r.i];
			if (point === undefined) continue;
			const s = this.value(point), before = s.peek()?.output, output = r.output as Output | undefined;
			if (output && older(output, before)) continue;
			s.value = { value: r.value, at: came - 1000 * (r.age_seconds ?? 0), came, quality: r.quality ?? "good", why: r.why, output };
		}
		if (Array.isArray(p.approvals)) this.approvals.value = p.approvals.map((a: any) => ({ ...a, came }));
		if (typeof p.emergency_stop === "boolean") this.stopped.value = p.emergency_stop;
	}
}

const less = (s: number | undefined, spent: number) => s === undefined ? undefined : Math.max(0, s - spent);

/** Whether a state is older than one that is known: they are ordered where the upper 32 bits agree. */
export function older(a: Output, than: Output | undefined): boolean {
	const x = a.state, y = than?.state;
	return x !== undefined && y !== undefined && Math.floor(x / 2 ** 32) === Math.floor(y / 2 ** 32) && x < y;
}

export const isOutput = (p: Point) => p.safe !== undefined;

/** Whether an output is away from safe, or on its way there, or held. */
export function awayFrom(p: Point, r: Reading | undefined): boolean {
	if (!r) return false;
	const o = r.output;
	return r.value !== undefined && r.value !== p.safe || o?.set !== undefined && o.set.value !== p.safe || o?.going_to !== undefined && o.going_to !== p.safe || o?.held_by !== undefined;
}

/** How old a value is by now, in seconds. */
export const ageOf = (a: Aged, came: number): number => (a.age_seconds ?? 0) + Math.max(0, now.value - came) / 1000;

/** What is left of a length that was told with a reading, in seconds. */
export function left(seconds: number | undefined, came: number): number | undefined {
	return seconds === undefined ? undefined : Math.max(0, seconds - Math.max(0, now.value - came) / 1000);
}

export const sites = signal<Site[]>([]);
export const siteOf = (name: string | null): Site | undefined =>
	sites.value.find(s => s.name === name) ?? (sites.value.length === 1 ? sites.value[0] : undefined);

/** Moves an output, once. A lost answer is asked for again by the same key; then it is not known. */
export async function move(s: Site, p: Point, value: Scalar, seconds: number, signal?: AbortSignal): Promise<any> {
	const key = crypto.randomUUID();
	const [tool, args] = typeof value === "boolean" ? ["switch_output", { output: p.point, on: value, for_seconds: seconds }]
		: ["set_level", { output: p.point, value, for_seconds: seconds }];
	const meta = { "agentsite/idempotency-key": key, "agentsite/expires-in": 10 };
	const once = () => s.conn.ask<any>(tool as string, args as object, { signal, meta });
	let a;
	try {
		a = await once();
	} catch (e) {
		if (!(e instanceof Fault) || e.kind !== "offline") throw e;
		try {
			a = await once();
		} catch (e2) {
			throw e2 instanceof Fault && e2.kind === "offline" ? new Fault("unknown_outcome", e2.message) : e2;
		}
	}
	return a;
}

/** Sends an output back to its safe value. */
export async function release(s: Site, p: Point): Promise<any> {
	return s.conn.tool<any>("release_output", { output: p.point });
}

/** Whether a text is the name of a site, and so may stand in a command. */
export const isName = (text: string): boolean => /^[a-z0-9_-]{1,24}$/.test(text);
