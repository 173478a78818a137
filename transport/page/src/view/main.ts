// The view of a tool's result, in a frame of a host of MCP Apps. It decides by the shape of the result what it shows.

import { output, clocks, readings, status, why, type Acts, type Told } from "./cards";
import { history } from "./chart";
import { el, said } from "./dom";
import { begin, call, notify, textOf, type Context, type Result } from "./host";
import { list } from "./values";
import { t } from "./words";

const every = 10_000, times = 360, sure = 5_000;
const main = document.querySelector("main")!;

type Kind = "history" | "readings" | "output" | "why" | "status";

/** What a structured result is, by its shape. */
function kindOf(v: any): Kind | undefined {
	if (!v || typeof v !== "object") return undefined;
	if (Array.isArray(v.readings)) return "readings";
	if (typeof v.output === "string") return "output";
	if (typeof v.emergency_stop === "boolean" || Array.isArray(v.sites)) return "status";
	if (typeof v.point === "string") return typeof v.quality === "string" ? "why" : "history";
	return undefined;
}

let input: Record<string, unknown> = {}, value: any, kind: Kind | undefined, came = 0;
let calls = false, busy = "", armed = 0, asked = 0, failed = 0, over = false;
const notes = new Map<string, Told>();

const acts: Acts = {
	busy: "", armed: false, since: () => (performance.now() - came) / 1000, note: key => notes.get(key),
	arm: () => {
		armed = performance.now() + sure;
		render();
		setTimeout(render, sure + 50);
	},
};

function show(v: unknown): void {
	const k = kindOf(v);
	if (!k) return;
	[value, kind, came] = [v, k, performance.now()];
	render();
}

/** Shows a text: there is nothing else. */
function plain(title: string, text = ""): void {
	kind = undefined;
	main.replaceChildren(el("h1", {}, title), el("p", { class: "text" }, said(text)));
}

function render(): void {
	if (!kind || over) return;
	acts.busy = busy;
	acts.armed = performance.now() < armed;
	const focused = document.activeElement?.getAttribute("data-act"), open = !!main.querySelector("details[open]");
	clocks.length = 0;
	main.replaceChildren(...kind === "history" ? history(value, Math.max(240, main.clientWidth)) : kind === "readings" ? readings(value, acts)
		: kind === "output" ? [output(value, value, acts)] : kind === "why" ? why(value, acts) : status(value, acts));
	if (failed) main.append(el("p", { class: "note" }, t("maybeOld")));
	if (open) main.querySelector("details")?.setAttribute("open", "");
	// The focus stays where it was: what had it is another element now.
	if (focused) [...main.querySelectorAll<HTMLElement>("[data-act]")].find(e => e.getAttribute("data-act") === focused)?.focus({ preventScroll: true });
}

/** Calls a tool for a button, which cannot be pressed meanwhile. */
async function press(key: string, tool: string, args: object): Promise<void> {
	if (busy) return;
	busy = key;
	armed = 0;
	notes.clear();
	render();
	try {
		const r: any = await call(tool, args);
		if (tool === "release_output") released(r);
		else stopped(r);
	} catch (e) {
		notes.set(key, { text: (e as Error).message || t("lost"), bad: true });
	}
	busy = "";
	render();
	if (!over && kind === "status") void refresh();
}

/** Puts what came of a release where its output is shown. */
function released(r: any): void {
	const of = { safe: r.safe, going_to: r.going_to, seconds_left: r.seconds_left };
	if (kind === "output") value = r;
	else if (kind === "why") value = { ...value, value: r.value, holder_name: undefined, output: of };
	came = performance.now();
}

function stopped(r: any): void {
	const sites = Array.isArray(r.sites) ? list(r.sites) : [r], all = sites.flatMap(s => list(s.outputs));
	const bad = all.filter(o => o.value !== o.safe || o.measured && o.measured.value !== o.safe);
	const silent = list(r.not_answered).map(m => " " + t("notAnswered", { site: String(m.site).slice(0, 60) }) + ".");
	notes.set("stop", { text: t("stopOf", { a: all.length - bad.length, b: all.length }) + silent.join(""), bad: bad.length + silent.length > 0 });
	const now = (s: any) => sites.some(x => x.site === undefined || x.site === s.site)
		? { ...s, emergency_stop: true, outputs_away_from_safe: list(s.outputs_away_from_safe).filter(o => bad.some(b => b.output === o.output)) } : s;
	value = Array.isArray(value.sites) ? { ...value, sites: list(value.sites).map(now), not_answered: r.not_answered } : now(value);
	came = performance.now();
}

/** Asks again for what is shown. An output has its value from read_points. */
async function refresh(): Promise<void> {
	const was = value, about = String(kind === "output" ? was.output : was?.point);
	try {
		let v: any;
		if (kind === "status") v = await call("site_status", {});
		else if (kind === "history") v = await call("read_history", input.point === was.point ? input : { point: was.point });
		else if (kind === "readings") v = await call("read_points", { points: list(was.readings).map(r => String(r.point)) });
		else {
			const r = list((await call("read_points", { points: [about] }) as any).readings)[0];
			if (!r || value !== was) return;
			v = { ...was, value: r.value, quality: r.quality };
			// It is another lease, or none: what was told of it is over.
			const told = kind === "why" ? { ...was.output } : v;
			if (r.value !== was.value) delete told.seconds_left, delete told.held_by, delete told.going_to, delete v.holder_name;
			else if (typeof told.seconds_left === "number") told.seconds_left = Math.max(0, told.seconds_left - acts.since());
			if (kind === "why" && was.output) v.output = told;
		}
		failed = 0;
		if (value === was && !busy && kindOf(v) === kind) show(v);
	} catch {
		failed++;
		render();
	}
}

function result(r: Result): void {
	notes.clear();
	if (r.isError) return plain(t("failed"), textOf(r));
	if (kindOf(r.structuredContent)) {
		show(r.structuredContent);
		// A conversation that is opened again brings results of long ago.
		if (calls && kind !== "history") setTimeout(() => { if (!busy && !over && kind) void refresh(); }, 1000);
		return;
	}
	plain(t(textOf(r) ? "waits" : "notShown"), textOf(r));
}

function context(c: Context): void {
	const root = document.documentElement.style;
	if (c.theme === "light" || c.theme === "dark") root.colorScheme = c.theme;
	for (const [name, v] of Object.entries(c.styles?.variables ?? {})) {
		if (/^--[a-z0-9-]+$/.test(name) && typeof v === "string") root.setProperty(name, v);
	}
}

function end(): void {
	over = true;
	clearInterval(clock);
	clearInterval(again);
}

const clock = setInterval(() => { if (!document.hidden) for (const c of clocks) c(); }, 1000);
const again = setInterval(() => {
	// What three times got no answer is not asked for again.
	if (document.hidden || !calls || !kind || busy || performance.now() < armed || asked >= times || failed >= 3) return;
	asked++;
	void refresh();
}, every);

let width = 0, height = 0;
new ResizeObserver(() => {
	if (over) return;
	if (main.clientWidth !== width && kind === "history") render();
	width = main.clientWidth;
	const now = Math.ceil(document.body.getBoundingClientRect().height);
	if (now !== height) notify("ui/notifications/size-changed", { height: height = now });
}).observe(document.body);

begin({ input: args => { input = args; }, result, cancelled: () => plain(t("cancelled")), context, end }).then(yes => {
	calls = yes;
	if (yes) acts.act = (key, tool, args) => void press(key, tool, args);
	render();
}, () => plain(t("noHost")));
