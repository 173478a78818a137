// A chart of the past in SVG: one panel for each unit, states as strips below, the same time for all.

import { useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useId, useMemo, useRef } from "preact/hooks";
import type { Past } from "./history";
import { axisOf, day, gaps, hour, lines, since, slots, spans, times, type Slot, type Span } from "./lines";
import type { Scalar } from "./site";
import { beside, named, quantity, scale, short, worded } from "./ui";
import { length, locale, number, t, timeOf } from "./words";

/** One point of a chart. safe and range are those of an output, whose strip shows when it was away, and how far. */
export interface Series { point: string; name?: string; unit?: string; past: Past; safe?: Scalar; range?: number }

const dashes = ["", "6 4", "2 3", "10 3 2 3", "1 4"];
const colors = ["var(--c1)", "var(--c3)", "var(--c2)", "var(--ink)", "var(--unk)"];
const side = 52, right = 6, stripe = 32;

interface Panel { unit: string; series: { s: Series; slots: Slot[]; gaps: [number, number][]; color: string; dash: string }[]; top: number; height: number; low: number; high: number; marks: number[] }

/** The chart. Arrow keys move the cursor, which a live region reads. */
export function Chart({ series, from, to, label }: { series: Series[]; from: number; to: number; label: string }) {
	const box = useRef<HTMLDivElement>(null), width = useSignal(0), id = useId();
	const cursor = useSignal<number | undefined>(undefined), read = useSignal("");
	useEffect(() => {
		const o = new ResizeObserver(([e]) => { width.value = Math.round(e!.contentRect.width); });
		o.observe(box.current!);
		return () => o.disconnect();
	}, []);
	const { panels, strips, height } = useMemo(() => layout(series, from, to), [series, from, to]);
	const w = width.value, x = (at: number) => side + (w - side - right) * (at - from) / (to - from);
	const step = (to - from) / Math.max(1, ...panels.flatMap(p => p.series.map(s => s.slots.length)), 60);
	const point = (e: PointerEvent) => {
		const b = box.current!.getBoundingClientRect();
		cursor.value = Math.min(to, Math.max(from, from + (e.clientX - b.left - side) / (w - side - right) * (to - from)));
	};
	const key = (e: KeyboardEvent) => {
		const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -8, PageDown: 8 }[e.key];
		if (by === undefined && e.key !== "Home" && e.key !== "End") return;
		e.preventDefault();
		cursor.value = e.key === "Home" ? from : e.key === "End" ? to : Math.min(to, Math.max(from, (cursor.value ?? to) + by! * step));
		read.value = at(panels, strips, cursor.value).map(v => `${v.name} ${v.text}`).join(", ") + " · " + stamp(cursor.value, to - from);
	};
	return <div data-chart>
		<Legend panels={panels} strips={strips} cursor={cursor} span={to - from} />
		<div class="chart" ref={box} tabIndex={0} role="img" aria-label={label} aria-describedby={id} onPointerMove={point} onPointerDown={point} onKeyDown={key}>
			{w > side + right && <svg viewBox={`0 0 ${w} ${height}`} height={height} aria-hidden="true">
				<Hatch />
				{useMemo(() => <>
					{panels.map(p => <PanelOf p={p} x={x} w={w} />)}
					{strips.map(s => <g>
						<text x={side + 2} y={s.top + 12}>{s.name}{s.spans.length > 0 && " · " + length(s.spans.reduce((n, [a, b]) => n + b - a, 0) / 1000)}</text>
						<rect class="track" x={side} y={s.top + 17} width={w - side - right} height="12" />
						{s.spans.map(([a, b, part]) => <rect class="away" x={x(a)} y={s.top + 29 - Math.max(2, 12 * part)} width={Math.max(2, x(b) - x(a))} height={Math.max(2, 12 * part)} />)}
					</g>)}
					{times(from, to, w < 520 ? 4 : 9).map(([v, text]) => <text x={Math.min(w - 18, Math.max(side, x(v)))} y={height - 2} text-anchor="middle">{text}</text>)}
				</>, [panels, strips, w, from, to])}
				<Cursor at={cursor} x={x} height={height - 18} />
			</svg>}
		</div>
		<p class="sr" id={id} aria-live="polite">{read}</p>
	</div>;
}

function Cursor({ at, x, height }: { at: Signal<number | undefined>; x: (t: number) => number; height: number }) {
	const v = at.value;
	return v === undefined ? null : <line class="cur" x1={Math.round(x(v))} x2={Math.round(x(v))} y1="4" y2={height} />;
}

const Hatch = () => <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
	<rect class="sunk" width="6" height="6" /><path class="hatch" d="M0 0v6" /></pattern></defs>;

interface Strip { name: string; top: number; spans: Span[]; s: Series }

function layout(series: Series[], from: number, to: number): { panels: Panel[]; strips: Strip[]; height: number } {
	const panels: Panel[] = [], strips: Strip[] = [];
	let top = 12, n = 0;
	for (const s of series) {
		if (!s.past.steps) continue;
		const unit = s.unit ?? "";
		let p = panels.find(x => x.unit === unit);
		if (!p) panels.push(p = { unit, series: [], top: 0, height: 0, low: Infinity, high: -Infinity, marks: [] });
		const of = slots(s.past, from, to);
		p.series.push({ s, slots: of, gaps: gaps(of, to), color: colors[n % 5]!, dash: dashes[n % 5]! });
		n++;
		for (const { step } of of) {
			if (!step) continue;
			p.low = Math.min(p.low, step.min);
			p.high = Math.max(p.high, step.max);
		}
	}
	panels.forEach((p, i) => {
		p.height = i ? 90 : 180;
		Object.assign(p, axisOf(p.low, p.high, i ? 3 : 4));
		p.top = top;
		top += p.height + 22;
	});
	for (const s of series) {
		if (s.past.steps) continue;
		strips.push({ name: nameOf(s), top, spans: spans(s.past.changes ?? [], s.safe ?? false, s.range ?? 1, from, to), s });
		top += stripe;
	}
	return { panels, strips, height: top + 16 };
}

const nameOf = (s: Series) => s.name ?? named(short(s.point));

function PanelOf({ p, x, w }: { p: Panel; x: (at: number) => number; w: number }) {
	const y = (v: number) => p.top + p.height - p.height * (v - p.low) / (p.high - p.low);
	const f = (v: number) => v.toFixed(1), by = scale(p.high, p.unit), unit = quantity(by > 1 ? p.high : 0, p.unit)[1];
	return <g>
		{p.marks.map((v, i) => <><line class="grid" x1={side} x2={w} y1={Math.round(y(v))} y2={Math.round(y(v))} />
			<text x={side - 6} y={y(v) + 4} text-anchor="end">{axis(v / by, p.unit)}{i === p.marks.length - 1 && unit && p.unit !== "By" ? " " + unit : ""}</text></>)}
		{p.series.map(({ s, slots, gaps, color, dash }) => {
			const { line, band } = lines(slots, 1000 * (s.past.step_seconds ?? 60), x, y);
			return <>
				{gaps.map(([a, b]) => <rect x={f(Math.max(side, x(a)))} y={p.top} width={f(Math.max(0, Math.min(w - right, x(b)) - Math.max(side, x(a))))} height={p.height} fill="url(#hatch)" />)}
				<path class="band" fill={color} d={band} /><path class="line" stroke={color} stroke-dasharray={dash || undefined} d={line} />
			</>;
		})}
	</g>;
}

/** A number of an axis; of bytes with its unit, which differs from mark to mark. */
const axis = (v: number, unit: string) => unit === "By" ? quantity(v, unit).join(" ") : number(v, 3);

interface Said { name: string; text: string; more?: string; color?: string; dash?: string }

/** What the series have at a time, or at last. */
function at(panels: Panel[], strips: Strip[], time: number | undefined): Said[] {
	return [...panels.flatMap(p => p.series.map(({ s, slots, color, dash }) => {
		const size = 1000 * (s.past.step_seconds ?? 60), v = (time === undefined ? slots.findLast(r => r.step) : slots.find(r => time >= r.at && time < r.at + size))?.step;
		return {
			name: nameOf(s), color, dash, text: v ? worded(v.mean, s.unit) : t("noReadingShort"),
			more: v && v.max > v.min ? t("fromTo", { a: beside(v.min, s.unit, v.mean), b: beside(v.max, s.unit, v.mean) })
				: undefined,
		};
	})), ...strips.map(s => {
		const c = (s.s.past.changes ?? []).findLast(x => time === undefined || Date.parse(x.time) <= time);
		return { name: s.name, text: worded(c?.value, s.s.unit) };
	})];
}

function stamp(at: number, span: number): string {
	const d = new Date(at);
	return span <= day * 1.5 ? timeOf(d) : d.toLocaleDateString(locale, { day: "numeric", month: "short" }) + (span < 40 * day ? ", " + timeOf(d) : "");
}

function Legend({ panels, strips, cursor, span }: { panels: Panel[]; strips: Strip[]; cursor: ReadonlySignal<number | undefined>; span: number }) {
	const when = cursor.value;
	// A step is a mean, and ends before what the point has now.
	const newest = Math.max(...panels.flatMap(p => p.series.map(s => s.slots.findLast(r => r.step)?.at ?? -Infinity)));
	return <div class="legend">
		<b class="nw">{when === undefined && newest < 0 ? t("lastStep") : stamp(when ?? newest, span)}</b>
		{at(panels, strips, when).map(v => <span>
			{v.color && <svg viewBox="0 0 26 10" aria-hidden="true"><path d="M0 5h26" stroke={v.color} stroke-width="2" stroke-dasharray={v.dash || undefined} /></svg>}
			<bdi>{v.name}</bdi> <b>{v.text}</b>{v.more && <span class="soft small">{v.more}</span>}</span>)}
		{panels.some(p => p.series.some(s => s.gaps.length)) && <span class="soft"><svg viewBox="0 0 26 10" aria-hidden="true"><Hatch /><rect width="26" height="10" fill="url(#hatch)" /></svg>{t("noReadingShort")}</span>}
	</div>;
}

/** A line in little, without words. */
export function Spark({ past, hours }: { past?: Past; hours: number }) {
	const d = useMemo(() => {
		if (!past?.steps?.length) return "";
		const to = Date.now(), of = slots(past, to - hours * hour, to), all = of.flatMap(s => s.step ? [s.step.mean] : []);
		// What is before the first reading takes no room, and two readings are no line.
		if (all.length < 3) return "";
		const low = Math.min(...all), high = Math.max(...all), flat = high - low < 1e-9;
		let out = "", pen = false;
		const drawn = since(of);
		drawn.forEach(({ step }, i) => {
			if (step) out += (pen ? "L" : "M") + (96 * i / Math.max(1, drawn.length - 1)).toFixed(1) + " " + (flat ? 12 : 22 - 20 * (step.mean - low) / (high - low)).toFixed(1);
			pen = !!step;
		});
		return out;
	}, [past]);
	return <svg class="spark" viewBox="0 0 96 24" preserveAspectRatio="none" aria-hidden="true"><path d={d} /></svg>;
}

