// Readings in rows and in little.

import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { Spark } from "./chart";
import { past } from "./history";
import { href } from "./route";
import { isOutput, type Point, type Site } from "./site";
import { Age, Name, named, Quality, quantity, short, Value } from "./ui";
import { t, T } from "./words";

/** Points whose values can be read. */
export const readable = (p: Point) => p.kind !== "text" && p.kind !== "image";
export const measured = (p: Point) => p.kind === "measurement";

/** The sparkline of a day, which is asked for when it is seen. */
export function Day({ s, p }: { s: Site; p: Point }) {
	const seen = useSignal(false), box = useRef<HTMLSpanElement>(null);
	useEffect(() => {
		const o = new IntersectionObserver(e => { if (e.some(x => x.isIntersecting)) { seen.value = true; o.disconnect(); } });
		o.observe(box.current!);
		return () => o.disconnect();
	}, []);
	const kept = seen.value && !s.gone.value ? past(s, p.point, 24, 48) : undefined;
	return <span ref={box}><Spark past={kept?.past.value} hours={24} /></span>;
}

/** A reading in a list: name, the last day, value. */
export function ReadingRow({ s, p, spark = true }: { s: Site; p: Point; spark?: boolean }) {
	const r = s.value(p.point).value, line = spark && measured(p);
	return <li class="p"><a href={href("point", { s: s.name, p: p.point })} class={line ? "" : "nos"} data-point={p.point}>
		<span class="nm"><Name of={short(p.point)} /></span>{line && <Day s={s} p={p} />}
		<span class="num"><Quality r={r} />{r && r.quality !== "good" && " "}{p.kind === "event" ? <Event s={s} p={p} /> : <Num s={s} p={p} />}</span></a></li>;
}

function Event({ s, p }: { s: Site; p: Point }) {
	const r = s.value(p.point).value;
	return <span class="soft">{!r || r.value === undefined ? t("notYet") : <T k="ago" age={<Age at={r.at} />} />}</span>;
}

function Num({ s, p }: { s: Site; p: Point }) {
	const r = s.value(p.point).value, v = r?.quality === "good" || r?.quality === "stale" ? r.value : undefined;
	if (typeof v !== "number") return <Value v={v} unit={p.unit} />;
	const [n, u] = quantity(v, p.unit);
	return <>{n}{u && <span class="unit"> {u}</span>}</>;
}

/** A few readings side by side. */
export function Trio({ s, of, spark = true }: { s: Site; of: Point[]; spark?: boolean }) {
	return <div class="trio">{of.map(p => <div key={p.point}><span class="l"><bdi>{named(short(p.point))}</bdi></span>
		<span class="v"><Small s={s} p={p} /></span>{spark && measured(p) && <Day s={s} p={p} />}</div>)}</div>;
}

function Small({ s, p }: { s: Site; p: Point }) {
	const r = s.value(p.point).value;
	return <Value v={r?.quality === "good" || r?.quality === "stale" ? r.value : undefined} unit={p.unit} />;
}

/** Whether a point tells of the board itself. */
export const ofBoard = (p: Point) => p.device === "this computer";

/** The readings that stand for a site. */
export function main(points: Point[]): Point[] {
	const all = points.filter(p => measured(p) && !isOutput(p));
	return [...all.filter(p => !ofBoard(p)), ...all.filter(ofBoard)].slice(0, 3);
}
