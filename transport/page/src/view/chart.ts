// The past of a point: a chart with band and mean, or its changes.

import { locale, number, timeOf } from "../format";
import type { Past } from "../history";
import { axisOf, day, gaps, lines, slots, times } from "../lines";
import { named, short } from "../names";
import { draw, el, said } from "./dom";
import { list, worded } from "./values";
import { t } from "./words";

const side = 48, right = 6, height = 150, top = 10, most = 4000;

const when = (at: number, span: number) => {
	const d = new Date(at);
	return (span > day ? d.toLocaleDateString(locale, { day: "numeric", month: "short" }) + ", " : "") + timeOf(d);
};

const axisText = (v: number) => Math.abs(v) < 1e6 ? number(v, 3) : v.toExponential(1);

/** The steps that can be drawn: of numbers, at times. */
const drawable = (of: unknown) => list(of).filter(s => [s.min, s.mean, s.max, Date.parse(s.time)].every(Number.isFinite));

/** Shows the past of a point in a width. */
export function history(p: any, width: number): HTMLElement[] {
	const name = named(short(String(p.point))), title = el("h1", {}, said(name), el("small", {}, said(String(p.point))));
	if (p.changes) return [title, changes(p.changes, p.unit)];
	const steps = drawable(p.steps), size = 1000 * (p.step_seconds > 0 ? p.step_seconds : 60);
	if (!steps.length) return [title, el("p", { class: "soft" }, t("nothing"))];
	const last = steps.at(-1), facts = el("dl", { class: "facts" }, ...([["now", last.last], ["mean", p.mean], ["lowest", p.min], ["highest", p.max]] as const)
		.map(([k, v]) => el("div", {}, el("dt", {}, t(k)), el("dd", {}, worded(v, p.unit)))));
	const to = Date.parse(last.time) + size, from = Math.max(Date.parse(steps[0].time), to - most * size), span = to - from;
	return [title, facts, chart({ ...p, steps, step_seconds: size / 1000 }, from, to, width) ?? el("p", { class: "soft" }, t("tooLarge")),
		table([t("time"), t("lowest"), t("mean"), t("highest")], () => steps.map(s => [when(Date.parse(s.time), span), ...[s.min, s.mean, s.max].map(v => worded(v, p.unit))]))];
}

function chart(p: Past, from: number, to: number, width: number): HTMLElement | undefined {
	const size = 1000 * p.step_seconds!, of = slots(p, from, to, most), good = of.filter(s => s.step);
	let low = Infinity, high = -Infinity;
	for (const { step } of good) [low, high] = [Math.min(low, step!.min), Math.max(high, step!.max)];
	const axis = axisOf(low, high, 3);
	if (!good.length || ![axis.low, axis.high].every(v => Math.abs(v) < 1e300)) return undefined;
	const w = width - side - right, x = (at: number) => side + w * (at - from) / (to - from), y = (v: number) => top + height * (axis.high - v) / (axis.high - axis.low);
	const { line, band } = lines(of, size, x, y), f = (v: number) => v.toFixed(1), span = to - from;
	const cursor = draw("path", { class: "cur" }), read = el("p", { class: "cursor", "aria-live": "polite" }, "\u00a0");
	let at = -1;
	const show = (i: number) => {
		const s = good[at = Math.max(0, Math.min(good.length - 1, i))]!, px = f(x(s.at + size / 2));
		cursor.setAttribute("d", `M${px} ${top}V${top + height}`);
		read.textContent = `${when(s.at, span)}: ${worded(s.step!.mean, p.unit)} (${worded(s.step!.min, p.unit)} – ${worded(s.step!.max, p.unit)})`;
	};
	const svg = draw("svg", { viewBox: `0 0 ${width} ${height + 34}`, "aria-hidden": "true" },
		...axis.marks.flatMap(v => [draw("path", { class: "grid", d: `M${side} ${f(y(v))}H${width}` }), draw("text", { x: f(side - 6), y: f(y(v) + 4), "text-anchor": "end" }, axisText(v))]),
		...gaps(of, to).map(([a, b]) => draw("rect", { class: "gap", x: f(x(a)), width: f(x(b) - x(a)), y: f(top), height: f(height) })),
		draw("path", { class: "band", d: band }), draw("path", { class: "line", d: line }), cursor,
		...times(from, to, width < 420 ? 3 : 6).map(([v, text]) => draw("text", { x: f(Math.min(width - 18, Math.max(side, x(v)))), y: f(height + 30), "text-anchor": "middle" }, text)));
	const pick = (e: PointerEvent) => {
		const b = svg.getBoundingClientRect(), to = from + ((e.clientX - b.left) * width / b.width - side) / w * span - size / 2;
		show(good.reduce((n, s, i) => Math.abs(s.at - to) < Math.abs(good[n]!.at - to) ? i : n, 0));
	};
	const keys: Record<string, () => number> = { ArrowLeft: () => at < 0 ? good.length - 1 : at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => good.length - 1 };
	const name = named(short(p.point));
	return el("div", {}, el("div", {
		class: "chart", tabindex: "0", role: "img", "data-act": "chart", pointermove: pick, pointerdown: pick,
		"aria-label": t("chart", { name, from: when(from, span), to: when(to, span), low: worded(p.min, p.unit), mean: worded(p.mean, p.unit), high: worded(p.max, p.unit) }),
		keydown: (e: KeyboardEvent) => { const k = keys[e.key]; if (k) { e.preventDefault(); show(k()); } },
	}, svg), read);
}

/** What changed, the newest first. */
export function changes(of: unknown, unit: unknown): HTMLElement {
	const all = list(of).filter(c => Number.isFinite(Date.parse(c.time)));
	if (!all.length) return el("p", { class: "soft" }, t("nothing"));
	all.sort((a, b) => Date.parse(b.time) - Date.parse(a.time));
	const span = Date.now() - Date.parse(all.at(-1).time);
	return el("ul", { class: "list" }, ...all.slice(0, 20).map(c => el("li", {}, el("time", {}, when(Date.parse(c.time), span)), el("b", {}, worded(c.value, unit)),
		el("span", { class: "soft" }, said([c.by ?? c.held_by, c.because, c.says].filter(s => typeof s === "string").join(" · "))))));
}

/** A table in a fold, which is filled once it is opened. */
export function table(head: string[], rows: () => string[][]): HTMLElement {
	const body = el("tbody"), of = el("details", {}, el("summary", { "data-act": "table" }, t("table")),
		el("div", { class: "scroll", tabindex: "0" }, el("table", {}, el("thead", {}, el("tr", {}, ...head.map(h => el("th", { scope: "col" }, h)))), body)));
	of.addEventListener("toggle", () => {
		if (!body.firstChild) body.append(...rows().map(r => el("tr", {}, ...r.map(c => el("td", {}, said(c))))));
	});
	return of;
}
