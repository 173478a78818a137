// Readings in rows and in little.

import { useEffect, useRef } from "preact/hooks";
import { useComputed, useSignal } from "@preact/signals";
import { Spark } from "./chart";
import { past } from "./history";
import { href } from "./route";
import { isOutput, type Point, type Reading, type Scalar, type Site } from "./site";
import { Age, Name, Quality, quantity, short, worded } from "./ui";
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
	const day = seen.value && !s.gone.value ? past(s, p.point, 24, 48).past.value : undefined;
	// A site that began a while ago shows its last hour.
	const young = day?.steps && day.steps.length < 3, hours = young ? 1 : 24;
	return <span ref={box}><Spark past={young ? past(s, p.point, 1, 60).past.value : day} hours={hours} /></span>;
}

/** A reading in a list: name, the last day, value. */
export function ReadingRow({ s, p, spark = true }: { s: Site; p: Point; spark?: boolean }) {
	const line = spark && measured(p);
	return <li class="p"><a href={href("point", { s: s.name, p: p.point })} class={line ? "" : "nos"} data-point={p.point}>
		<span class="nm"><Name of={short(p.point)} /></span>{line && <Day s={s} p={p} />}
		<span class="num"><Ill s={s} p={p} />{p.kind === "event" ? <Event s={s} p={p} /> : <Num s={s} p={p} />}</span></a></li>;
}

function Event({ s, p }: { s: Site; p: Point }) {
	const r = s.value(p.point).value;
	return <span class="soft">{!r || r.value === undefined ? t("notYet") : <T k="ago" age={<Age at={r.at} />} />}</span>;
}

/** What is wrong with a reading. It is rendered again only when that changes. */
function Ill({ s, p }: { s: Site; p: Point }) {
	const quality = useComputed(() => s.value(p.point).value?.quality ?? "good");
	return quality.value === "good" ? null : <><Quality r={s.value(p.point).value} /> </>;
}

/** A value and its unit, as text that changes in its place. */
function Num({ s, p, small = false }: { s: Site; p: Point; small?: boolean }) {
	const parts = useComputed(() => {
		const v = shown(s.value(p.point).value);
		return typeof v === "number" ? quantity(v, p.unit) : [worded(v, p.unit), ""];
	});
	const text = useComputed(() => parts.value[0]), unit = useComputed(() => parts.value[1] && " " + parts.value[1]);
	return <bdi>{text}{small ? <small>{unit}</small> : <span class="unit">{unit}</span>}</bdi>;
}

/** The value of a reading that can be shown: a faulty one has none. */
export const shown = (r: Reading | undefined): Scalar => r?.quality === "good" || r?.quality === "stale" ? r.value : undefined;

/** A few readings side by side. */
export function Trio({ s, of, spark = true }: { s: Site; of: Point[]; spark?: boolean }) {
	return <div class="trio">{of.map(p => <div key={p.point}><span class="l"><bdi>{s.title(p.point)}</bdi></span>
		<span class="v"><Num s={s} p={p} small /></span>{spark && measured(p) && <Day s={s} p={p} />}</div>)}</div>;
}

/** Whether a point tells of the board itself. */
export const ofBoard = (p: Point) => p.device === "this computer";

/** The readings that stand for a site. */
export function main(points: Point[]): Point[] {
	const all = points.filter(p => measured(p) && !isOutput(p));
	return [...all.filter(p => !ofBoard(p)), ...all.filter(ofBoard)].slice(0, 3);
}
