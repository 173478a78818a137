// An output, readings, and the state of a site.

import { age, clock } from "../format";
import { named, short } from "../names";
import { changes } from "./chart";
import { el, said } from "./dom";
import { list, seconds, worded } from "./values";
import { t } from "./words";

/** What the cards may do: act calls a tool by a button, unless the host lets nothing be called. since is how long ago,
 *  in seconds, what they show came. */
export interface Acts { act?: (key: string, tool: string, args: object) => void; busy: string; armed: boolean; arm: () => void; note: (key: string) => Told; since: () => number }

/** What came of a press, and whether it is bad. */
export type Told = { text: string; bad: boolean } | undefined;

const told = (n: Told) => el("p", { class: n?.bad ? "note" : "soft", role: "alert", hidden: !n }, said(n?.text ?? ""));

/** Texts that go on by themselves, each second. */
export const clocks: (() => void)[] = [];

function goesOn(text: () => string): Text {
	const n = document.createTextNode(text());
	clocks.push(() => { n.data = text(); });
	return n;
}

/** A button, and below it what came of it. */
function button(a: Acts, key: string, kind: string, text: string, label: string, press: () => void): HTMLElement {
	const busy = a.busy === key;
	return el("div", { class: "do" }, el("button", { type: "button", class: kind, "data-act": key, "aria-label": label, disabled: busy, click: press }, busy ? t("asking") : text),
		told(a.note(key)));
}

/** An output: its value, whether that is the safe one, what ends it, and the way back. safe is a value. */
export function output(o: any, s: any, a: Acts, more: { name?: unknown; holder?: unknown; unit?: unknown; level?: string } = {}): HTMLElement {
	const address = String(typeof o.output === "string" ? o.output : o.point), name = named(short(address)), left = seconds(s.seconds_left), goal = s.going_to;
	const known = o.quality === undefined || o.quality === "good";
	const atSafe = known && s.safe !== undefined && o.value === s.safe && (goal === undefined || goal === s.safe) && left === undefined;
	const holder = more.holder ?? s.held_by, safe = worded(s.safe, more.unit);
	return el("article", { class: "card " + (s.fault || !known ? "bad" : atSafe ? "" : "away"), "data-output": address, "data-safe": String(atSafe) },
		el("header", {}, el(more.level ?? "h1", {}, said(typeof more.name === "string" && more.name ? more.name : name), el("small", {}, said(address))),
			el("span", { class: "state" }, t(!known ? "unknown" : atSafe ? "safe" : "away"))),
		el("p", { class: "value" }, said(worded(o.value, more.unit))),
		goal !== undefined && goal !== o.value && el("p", {}, t("moving", { value: worded(goal, more.unit) })),
		left !== undefined && el("p", { "data-left": true }, el("b", {}, goesOn(() => clock(Math.max(0, left - a.since())))), " ", s.safe === undefined ? t("leftSafe") : t("left", { safe })),
		!atSafe && a.act && button(a, "release " + address, "", t("backToSafe"), t("backToSafeOf", { name }), () => a.act!("release " + address, "release_output", { output: address })),
		...[s.fault, s.needs].filter(x => typeof x === "string").map(x => el("p", {}, said(x))),
		typeof s.returned_because === "string" && atSafe && el("p", { class: "soft" }, t("because"), ": ", said(s.returned_because)),
		typeof holder === "string" && holder !== "" && el("p", { class: "soft" }, said(t("heldBy", { who: who(holder) }))));
}

/** A holder in words. */
const who = (holder: string) => holder === "local" || holder === "token" ? t(holder) : holder.startsWith("did:") ? holder.slice(0, 14) + "…" + holder.slice(-4) : holder.slice(0, 80);

/** Why a point is as it is. */
export function why(w: any, a: Acts): HTMLElement[] {
	const title = typeof w.name === "string" && w.name ? w.name : named(short(String(w.point)));
	return [
		w.output && typeof w.output === "object" ? output(w, w.output, a, { name: w.name, holder: w.holder_name, unit: w.unit })
			: el("article", { class: "card" }, el("header", {}, el("h1", {}, said(title), el("small", {}, said(w.point)))), el("p", { class: "value" }, said(worded(w.value, w.unit)), " ", ill(w))),
		...[w.why, w.refused && t("notMoved") + ": " + w.refused].filter(x => typeof x === "string" && x).map(x => el("p", {}, said(x))),
		...list(w.changes).length ? [el("h2", {}, t("changes")), changes(w.changes, w.unit)] : [],
	];
}

const ill = (r: any) => r.quality === "good" || r.quality === undefined ? "" : el("span", { class: "badge" }, t(r.quality === "stale" ? "stale" : "fault"));

/** Readings as a table. */
export function readings(r: any, a: Acts): HTMLElement[] {
	return [
		el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("value"), "data-act": "readings" }, el("table", {}, el("thead", {}, el("tr", {}, ...[t("point"), t("value"), t("age")].map(h => el("th", { scope: "col" }, h)))),
			el("tbody", {}, ...list(r.readings).map(x => {
				const old = typeof x.age_seconds === "number" && x.age_seconds >= 0 && x.age_seconds < 1e10 ? x.age_seconds : undefined;
				return el("tr", {}, el("th", { scope: "row" }, said(named(short(String(x.point)))), el("small", {}, said(x.point))),
					el("td", {}, said(worded(x.value, x.unit)), " ", ill(x), typeof x.why === "string" && el("small", {}, said(x.why))),
					el("td", { class: "soft" }, old === undefined ? "–" : goesOn(() => age(old + a.since()))));
			})))),
		...missed(r),
	];
}

const missed = (r: any) => list(r.not_answered).map(m => el("p", { class: "note" }, said(t("notAnswered", { site: String(m.site).slice(0, 60) })), " ", said(m.why)));

/** The state of a site, or of several; the stop is of all of them. */
export function status(s: any, a: Acts): HTMLElement[] {
	const sites = Array.isArray(s.sites) ? list(s.sites) : [s];
	return [
		...a.act && (sites.some(x => x.emergency_stop !== true) || list(s.not_answered).length) ? [button(a, "stop", "stop" + (a.armed ? " armed" : ""), t(a.armed ? "stopAgain" : "stop"), t(a.armed ? "stopAgain" : "stop"),
			() => a.armed ? a.act!("stop", "emergency_stop", {}) : a.arm())] : [told(a.note("stop"))],
		...sites.flatMap(x => [
			el("header", { class: "site", "data-stopped": String(x.emergency_stop === true) }, el("h1", {}, said(x.site), x.simulated === true && el("small", {}, t("simulated"))),
				el("span", { class: x.emergency_stop === true ? "state bad" : "state" }, t(x.emergency_stop === true ? "stopped" : "running"))),
			x.emergency_stop === true && el("p", {}, t("stoppedMore")),
			...list(x.devices).filter(d => Array.isArray(d.faults) && d.faults.length)
				.map(d => el("p", {}, el("span", { class: "badge" }, t("fault")), " ", said(d.device), ": ", said(String(d.faults[0])))),
			...list(x.outputs_away_from_safe).map(o => output(o, o, a, { level: "h2" })),
			!list(x.outputs_away_from_safe).length && el("p", { class: "soft" }, t("awayNone")),
		].filter(e => e instanceof HTMLElement)),
		...missed(s),
	];
}
