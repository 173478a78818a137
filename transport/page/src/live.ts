// The streams of values: one for each site and browser, closed while nobody looks.

import { batch } from "@preact/signals";
import { Fault, turns } from "./rpc";
import { state } from "./session";
import { now, sites, type Site, type Status } from "./site";

// A browser has six connections to a host. Of many sites, the first have a stream that stays open, and the
// others are asked in turn, two at a time.
const streams = () => sites.value.length > 3 ? 2 : 3;
const turn = turns(2);
// After this long without a word a site is asked for one, in time for the 12 s of silence: with devices that are
// read each 10 s, once between two rounds.
const quiet = 6_000;
const patience = 4_000;     // for that word, and for the first of a stream

let channel: BroadcastChannel;
let looking: AbortController | undefined; // while this tab is seen
let leads = false;

/** Begins to keep the sites up to date. The tabs of the same person share the streams. */
export function begin(you: string): void {
	channel = new BroadcastChannel("agentsite " + you);
	channel.onmessage = ({ data }) => {
		if (data.stop) return pause(data.stop);
		const s = sites.value.find(x => x.name === data.site);
		if (data.hello) {
			if (leads) for (const x of sites.value) if (x.known.value) tell(x, { params: x.snapshot(), status: x.status.value, points: x.points.value });
		} else if (s && !leads) {
			take(s, data);
		}
	};
	document.addEventListener("visibilitychange", look);
	addEventListener("online", retryNow);
	addEventListener("pagehide", () => looking?.abort());
	addEventListener("pageshow", e => { if (e.persisted) look(); });
	state.subscribe(s => { if (s !== "in") look(); });
	setInterval(() => {
		if (!document.hidden) now.value = performance.now();
		if (slept() && looking) look();
	}, 1000);
	look();
}

const retry = new EventTarget();

/** Asks sites without contact at once. */
export function retryNow(): void {
	retry.dispatchEvent(new Event("now"));
}

interface Word { params?: any; status?: Status; points?: any; trouble?: string }

/** Takes what this tab or the leading one has heard. */
function take(s: Site, w: Word): void {
	batch(() => {
		if (w.trouble !== undefined) s.trouble.value = w.trouble;
		if (w.trouble) return;
		s.contact.value = now.value = performance.now();
		if (w.points) s.points.value = w.points;
		if (w.status) s.status.value = w.status;
		if (w.params) {
			s.apply(w.params);
			s.known.value = true;
		}
	});
}

function tell(s: Site, w: Word): void {
	channel.postMessage({ site: s.name, ...w });
}

function heard(s: Site, w: Word): void {
	take(s, w);
	tell(s, w);
}

let offset = Date.now() - performance.now();

/** Says whether the machine slept, in which performance.now() may stand still. What was heard before is old then. */
function slept(): boolean {
	const t = performance.now(), ahead = Date.now() - t - offset;
	offset += ahead;
	if (ahead < 5_000) return false;
	for (const s of sites.value) s.contact.value = Math.min(s.contact.value, t - 11_000);
	return true;
}

function look(): void {
	slept();
	looking?.abort();
	looking = undefined;
	leads = false;
	if (document.hidden || state.value !== "in") return; // a window that is signed out asks nothing
	looking = new AbortController();
	const t = performance.now();
	now.value = t;
	// What was known before stays for a second, in which a snapshot comes.
	for (const s of sites.value) s.contact.value = Math.max(s.contact.value, t - 11_000);
	channel.postMessage({ hello: true });
	lead(looking.signal);
}

/** Has the streams of this browser while no other tab has them. */
async function lead(signal: AbortSignal): Promise<void> {
	try {
		await navigator.locks.request(channel.name, { signal }, async () => {
			leads = true;
			await Promise.all(sites.value.map((s, i) => follow(s, i >= streams(), signal)));
		});
	} catch {
		// The tab is hidden.
	}
}

let paused = 0;

/** Closes all streams of this tab for a while, so that a stop has a connection. */
export function pause(ms: number): void {
	paused = performance.now() + ms;
	looking?.abort();
	looking = undefined;
	leads = false;
	setTimeout(() => { if (performance.now() >= paused - 5) look(); }, ms);
}

/** Closes the streams of all tabs. */
export function pauseAll(ms: number): void {
	channel?.postMessage({ stop: ms });
	pause(ms);
}

/** Keeps a site up to date. One that is only asked in turn is subscribed to for its snapshot. */
async function follow(s: Site, inTurn: boolean, signal: AbortSignal): Promise<void> {
	for (let fails = 0; !signal.aborted;) {
		const fine = await (inTurn ? turn(async () => !signal.aborted && attend(s, true, signal)) : attend(s, false, signal));
		if (signal.aborted) return;
		fails = fine ? 0 : fails + 1;
		const wait = inTurn && fine ? 5000 : Math.min(inTurn ? 8000 : 2000, 500 * 2 ** (fails - 1)) * (.8 + .4 * Math.random());
		await pausing(wait, signal);
	}
}

/** Waits, but no longer when the network is back. */
function pausing(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise(done => {
		const end = () => { clearTimeout(timer); retry.removeEventListener("now", end); signal.removeEventListener("abort", end); done(); };
		const timer = setTimeout(end, ms);
		retry.addEventListener("now", end);
		signal.addEventListener("abort", end);
	});
}

/** Has one stream until it ends, and says whether anything came. */
async function attend(s: Site, inTurn: boolean, signal: AbortSignal): Promise<boolean> {
	const own = new AbortController(), both = AbortSignal.any([signal, own.signal]);
	let last = performance.now(), fine = false, changed = true, asking = false;
	/** Asks for the offer where it is not known, and for a word where nothing was heard. */
	const tend = async () => {
		if (asking) return;
		asking = true;
		try {
			if (changed && !(inTurn && s.points.peek())) {
				const [list, word] = await Promise.all([s.conn.tool<{ points: any[] }>("list_points", {}, { signal: both }), about(s, both)]);
				changed = false;
				heard(s, { points: list.points, ...word });
			} else if (inTurn || performance.now() - s.contact.peek() > quiet) {
				heard(s, await about(s, both));
			}
			last = performance.now();
		} catch {
			// Silence ends the stream, and it is asked for again.
		}
		asking = false;
	};
	const watch = setInterval(() => {
		const silent = performance.now() - last;
		if (silent > (fine ? quiet : 0) + patience) own.abort();
		else if (fine && !inTurn) void tend();
	}, 500);
	try {
		await s.conn.listen({ notifications: { toolsListChanged: true } }, n => {
			last = performance.now();
			if (n.method === "notifications/agentsite/values") {
				fine = true;
				heard(s, { params: n.params, trouble: "" });
				changed ||= !!n.params.points;
				if (inTurn) void tend().finally(() => own.abort());
				else if (changed) void tend();
			} else if (n.method === "notifications/tools/list_changed") {
				changed = true;
			}
		}, both, () => { last = performance.now(); });
	} catch (e) {
		if (!both.aborted) heard(s, { trouble: e instanceof Fault ? e.kind : "internal" });
	} finally {
		clearInterval(watch);
	}
	return fine;
}

/** What a site says of itself. */
async function about(s: Site, signal: AbortSignal): Promise<Word> {
	try {
		return { status: await s.conn.tool<Status>("site_status", {}, { signal, timeout: patience }) };
	} catch (e) {
		if (e instanceof Fault && !["offline", "unavailable", "out", "internal"].includes(e.kind)) return {};
		throw e;
	}
}
