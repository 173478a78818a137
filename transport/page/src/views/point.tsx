// A point: its value, its past as a chart or a table, what it is compared with, and where it comes from.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Query, View } from "../views";
import { Chart, type Series } from "../chart";
import { since, slots } from "../lines";
import { past, type Past } from "../history";
import { Holder, OutputCard } from "../output";
import { readable, shown } from "../reading";
import { href } from "../route";
import { now, siteOf, type Point, type Site } from "../site";
import { Age, beside, Button, Choice, deviceOf, Loading, Name, named, Note, panel, Quality, quantity, says, Section, short, Value, worded } from "../ui";
import { dayTime, length, t, T } from "../words";
import { Who } from "./parts";
import { outcome } from "./tasks";

export const point: View = {
	name: "point", icon: "site", title: q => { const of = q.get("p") ?? ""; return siteOf(q.get("s"))?.title(of) ?? named(short(of)); }, scope: q => siteOf(q.get("s")), back: q => href("site", { s: q.get("s") ?? "" }), Show,
};

const ranges: [string, number, number][] = [["range.hour", 1, 60], ["range.day", 24, 96], ["range.week", 168, 168], ["range.month", 720, 180], ["range.year", 8760, 180]];
const most = 5;

function Show({ q }: { q: Query }) {
	const s = siteOf(q.get("s")), p = s?.point(q.get("p") ?? "");
	if (!s) return <div class="card"><h3>{t("noSuchSite")}</h3></div>;
	if (!s.points.value) return <Loading name={s.name} />;
	if (!p) return <div class="card"><h3>{t("noSuchPoint")}</h3><p><code><bdi>{q.get("p")}</bdi></code></p></div>;
	const points = [p, ...q.getAll("c").flatMap(a => s.point(a) ?? [])].slice(0, most);
	return <div class="stack live" data-view="point" key={p.point}>
		{p.safe !== undefined ? <div class="cards"><OutputCard s={s} p={p} alone /></div> : <Now s={s} p={p} />}
		<PastOf s={s} p={p} points={points} q={q} />
		<From s={s} p={p} />
	</div>;
}

function Now({ s, p }: { s: Site; p: Point }) {
	const r = s.value(p.point).value, v = shown(r);
	return <div class="head" data-now><span class="val t6"><Value v={v} unit={p.unit} /></span>
		<span class="small soft">{p.description && <bdi>{p.description}</bdi>}{r?.quality === "good" && r.value !== undefined && <>{p.description && " · "}<T k="ago" age={<Age at={r.at} />} /></>}</span>
		<Quality r={r} />{r?.why && <span class="small"><bdi>{r.why}</bdi></span>}</div>;
}

function PastOf({ s, p, points, q }: { s: Site; p: Point; points: Point[]; q: Query }) {
	const chosen = useSignal<number | undefined>(undefined), young = useSignal(false), range = useComputed(() => chosen.value ?? (young.value ? 0 : 1)), table = useSignal(false), [key, hours, steps] = ranges[range.value]!;
	// The chart goes on when its newest step is over.
	const beat = useComputed(() => Math.floor(now.value / 30_000)).value;
	const end = useSignal<number | undefined>(undefined), span = hours * 3600_000;
	const go = (by: number) => {
		const at = (end.value ?? Date.now()) + by * span;
		end.value = at < Date.now() - span / 2 ? at : undefined;
	};
	const asked = points.map(x => ({ x, kept: past(s, x.point, hours, steps, end.value) }));
	const pasts = asked.map(a => a.kept.past.value), fault = asked.find(a => a.kept.fault.value)?.kept.fault.value;
	const to = useMemo(() => end.value ?? Date.now(), [beat, hours, end.value, ...pasts]), from = to - span;
	const series = useMemo(() => asked.flatMap(({ x }, i): Series[] => pasts[i] ? [{ point: x.point, name: s.title(x.point), unit: x.unit, past: pasts[i]!, safe: x.safe, range: (x.max ?? 1) - (x.min ?? 0) }] : []), [...pasts, points.length]);
	const first = pasts[0], begun = first && (first.steps ?? first.changes)?.[0]?.time;
	// A site that began a while ago shows its last hour first.
	useEffect(() => { if (begun && chosen.value === undefined && Date.now() - Date.parse(begun) < 3 * 3600_000) young.value = true; }, [begun]);
	return <>
		<div class="btns">
			<Choice class="range" label={t("range")} of={ranges.map(([k], i) => ({ value: i, text: t(k as "range.hour") }))} chosen={range.value} choose={i => { chosen.value = i; }} />
			<button type="button" class="btn" data-act="table" onClick={() => { table.value = !table.value; }}>{t(table.value ? "asChart" : "asTable")}</button>
			<button type="button" class="btn" data-act="csv" onClick={() => save(s, series, from, to)}>CSV</button>
		</div>
		<div class="btns" role="group" aria-label={t("timeShown")}>
			<button type="button" class="btn icon" data-act="earlier" aria-label={t("earlier")} onClick={() => go(-1)}>←</button>
			<span class="small" data-shown>{dayTime(new Date(from))} – {end.value ? dayTime(new Date(to)) : t("nowShown")}</span>
			<button type="button" class="btn icon" data-act="later" aria-label={t("later")} disabled={!end.value} onClick={() => go(1)}>→</button>
		</div>
		{fault !== undefined && <Note tone="bad" icon="bad">{says(fault)}</Note>}
		{!series.length ? fault === undefined && <Loading name={s.name} /> : <div class="card">
			{table.value ? <Table s={s} series={series} from={from} to={to} /> : <Chart series={series} from={from} to={to} label={t("chartOf", { names: series.map(x => x.name).join(", "), range: t(key as "range.hour") })} />}
			{first?.steps?.length ? <Sum p={p} past={first} /> : null}
		</div>}
		<div class="btns">
			{points.length < most && <Button icon="plus" act={() => panel({ title: t("compareWith"), body: <Pick s={s} q={q} points={points} /> })} hook="compare">{t("compare")}</Button>}
			{points.slice(1).map(x => <a class="btn" href={without(q, x.point)} aria-label={t("remove", { name: s.title(x.point) })}><bdi>{s.title(x.point)}</bdi> ×</a>)}
		</div>
	</>;
}

function without(q: Query, address: string): string {
	const n = new URLSearchParams(q);
	n.delete("c", address);
	return "#point?" + n;
}

function Pick({ s, q, points }: { s: Site; q: Query; points: Point[] }) {
	const others = (s.points.value ?? []).filter(x => readable(x) && x.kind !== "event" && !points.includes(x));
	return <ul class="list">{others.map(x => <li class="p1"><button type="button" class="line" onClick={() => { panel(undefined); const n = new URLSearchParams(q); n.append("c", x.point); location.hash = "point?" + n; }}>
		<span class="grow"><Name of={short(x.point)} /><br /><span class="small soft"><Name of={deviceOf(x.point)} /></span></span></button></li>)}</ul>;
}

function Sum({ p, past }: { p: Point; past: Past }) {
	const all = past.steps!.filter(x => x.good !== 0);
	if (!all.length) return null;
	const low = all.reduce((a, b) => b.min < a.min ? b : a), high = all.reduce((a, b) => b.max > a.max ? b : a);
	const mean = past.mean ?? all.reduce((a, b) => a + b.mean, 0) / all.length;
	const cell = (label: string, v: number) => { const [n, u] = quantity(v, p.unit); return <div><span class="l">{label}</span><span class="v">{n} <small>{u}</small></span></div>; };
	return <div class="trio line0">{cell(t("lowest", { time: dayTime(new Date(low.time)) }), past.min ?? low.min)}{cell(t("mean"), mean)}{cell(t("highest", { time: dayTime(new Date(high.time)) }), past.max ?? high.max)}</div>;
}

function Table({ s, series, from, to }: { s: Site; series: Series[]; from: number; to: number }) {
	return <div class="scroll tall" tabIndex={0} role="region" aria-label={t("asTable")} data-table>{series.map(x => <table>
		<caption class="cap"><bdi>{x.name}</bdi>{x.unit && " · " + quantity(0, x.unit)[1]}</caption>
		{x.past.steps ? <><thead><tr><th>{t("time")}</th><th class="r">{t("lowestShort")}</th><th class="r">{t("mean")}</th><th class="r">{t("highestShort")}</th></tr></thead>
			<tbody>{since(slots(x.past, from, to)).toReversed().map(({ at, step }) => <tr><td class="nw">{dayTime(new Date(at))}</td>{step ? [step.min, step.mean, step.max].map((v, i) => { const text = beside(v, x.unit, 0); return <td class="r">{i === 1 ? <b>{text}</b> : text}</td>; })
				: <><td class="r">–</td><td class="r">–</td><td class="r">{t("noReadingShort")}</td></>}</tr>)}</tbody></>
			: <><thead><tr><th>{t("time")}</th><th>{t("value")}</th><th>{t("because")}</th></tr></thead>
				<tbody>{(x.past.changes ?? []).toReversed().map(c => <tr><td class="nw">{dayTime(new Date(c.time))}</td><td>{worded(c.value, x.unit)}</td><td>{c.held_by ? <Holder s={s} of={c.held_by} /> : <bdi>{c.because}</bdi>}</td></tr>)}</tbody></>}
	</table>)}</div>;
}

/** A cell of a CSV file, which no spreadsheet takes for a formula. */
function cell(v: unknown): string {
	if (typeof v === "number") return String(v);
	const s = String(v ?? "");
	return '"' + (/^[=+\-@\t\r]/.test(s) ? "'" : "") + s.replaceAll('"', '""') + '"';
}

/** Saves what is shown as a CSV file: a line for each point and step, or change. */
function save(s: Site, series: Series[], from: number, to: number): void {
	const rows: unknown[][] = [["point", "unit", "time", "min", "mean", "max", "value"]];
	for (const x of series) {
		for (const { at, step } of x.past.steps ? slots(x.past, from, to) : []) if (step) rows.push([x.point, x.unit, new Date(at).toISOString(), step.min, step.mean, step.max, step.last]);
		for (const c of x.past.changes ?? []) rows.push([x.point, x.unit, c.time, "", "", "", c.value]);
	}
	const url = URL.createObjectURL(new Blob([rows.map(r => r.map(cell).join(",")).join("\r\n") + "\r\n"], { type: "text/csv" }));
	const a = document.createElement("a");
	a.href = url;
	a.download = [s.name, short(series[0]?.point ?? ""), new Date().toISOString().slice(0, 10)].join("-").replace(/[^\p{L}\p{N}.-]+/gu, "_") + ".csv";
	a.click();
	setTimeout(() => URL.revokeObjectURL(url), 1000);
}

interface Origin { used_by?: string[]; required_by?: string[]; changes?: { time: string; value?: any; held_by?: string; because?: string; by?: string; outcome?: string; says?: string }[] }

function From({ s, p }: { s: Site; p: Point }) {
	const [why, set] = useState<Origin | undefined>(undefined), state = s.value(p.point).value?.output?.state;
	useEffect(() => {
		const end = new AbortController();
		s.conn.tool<Origin>("explain_point", { point: p.point }, { signal: end.signal }).then(set, () => {});
		return () => end.abort();
	}, [s, p.point, state]);
	const used = [...why?.used_by ?? [], ...why?.required_by ?? []];
	return <div class="two">
		<Section title={t("whereFrom")}><dl class="card kv small">
			{p.device && <><dt>{t("part")}</dt><dd><bdi>{p.device}</bdi></dd></>}
			<dt>{t("programName")}</dt><dd class="mono"><bdi>{p.point}</bdi></dd>
			{p.safe !== undefined && p.description && <><dt>{t("whatFor")}</dt><dd><bdi>{p.description}</bdi></dd></>}
			{p.min !== undefined && <><dt>{t("range")}</dt><dd>{worded(p.min)} – {worded(p.max, p.unit)}</dd></>}
			{p.max_seconds !== undefined && <><dt>{t("atOnce")}</dt><dd>{length(p.max_seconds)}</dd></>}
			{p.limits && <><dt>{t("limits")}</dt><dd><bdi>{p.limits}</bdi></dd></>}
			{used.length > 0 && <><dt>{t("usedBy")}</dt><dd>{used.map((u, i) => <>{i > 0 && ", "}<Who id={u} /></>)}</dd></>}
		</dl></Section>
		{p.safe !== undefined && !!why?.changes?.length && <Section title={t("lastChanges")}><ul class="list">{why.changes.map(c => <li class="top"><span class="small soft nw">{dayTime(new Date(c.time))}</span>
			<div class="grow">{worded(c.value, p.unit)}<br /><span class="small soft">{c.by ?? c.held_by ? <Holder s={s} of={c.by ?? c.held_by} /> : <bdi>{c.because}</bdi>}{c.says && <> · <bdi>{c.says}</bdi></>}</span></div>
			{c.outcome && c.outcome !== "done" && <span class="small"><bdi>{outcome(c.outcome)}</bdi></span>}</li>)}</ul></Section>}
	</div>;
}

