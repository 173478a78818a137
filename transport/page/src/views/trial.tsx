// A trial: what a rule would have done over the past, beside what happened.

import { useMemo, useState } from "preact/hooks";
import { Chart, type Series } from "../chart";
import { past } from "../history";
import type { Scalar, Site } from "../site";
import { Choice, Loading, worded } from "../ui";
import { age, dayTime, length, number, t } from "../words";
import { Failed, PointName, useOwner } from "./parts";

interface Use { moves: number; seconds_away: number }
interface Tried {
	from: string; to: string; readings: number;
	rules: { rule: string; mistake?: string; outputs?: (Use & { output: string; refused?: { reason: string;
		count: number }[] })[] }[];
	outputs: { output: string; safe: Scalar; would: Use; was: Use & { seconds_unknown?: number;
		changes?: { time: string; value: Scalar }[] } }[];
	moves: { time: string; output: string; value: Scalar; rule: string; cause?: string }[]; more_moves?: number;
}

const ago = (hours: number) => new Date(Date.now() - hours * 3600e3).toISOString();
const lengths = [1, 24, 7 * 24];

/** Tries one rule, or a draft, over the hours that a person chooses. */
export function Trial({ site, rule, reads }: { site: Site; rule: string; reads: string[] }) {
	const [hours, setHours] = useState(24), from = useMemo(() => ago(hours), [hours]);
	const { value: v, fault, again } = useOwner<Tried>(site, "owner/try", { rules: [rule], from });
	const of = v?.rules.find(r => r.rule === rule);
	return <section class="card" data-trial={rule}><h3>{t("trial.title")}</h3>
		<Choice label={t("trial.title")} of={lengths.map(h => ({ value: h, text: length(h * 3600) }))} chosen={hours}
			choose={setHours} />
		{fault ? <Failed of={fault} again={again} /> : !v ? <Loading name={site.name} /> : <>
			{of?.mistake && <p class="badtext"><bdi>{of.mistake}</bdi></p>}
			{v.outputs.map(o => <Output key={o.output} site={site} v={v} o={o}
				refused={of?.outputs?.find(u => u.output === o.output)?.refused} reads={reads} hours={hours} />)}
			<p class="small soft">{t("trial.readings", { n: number(v.readings) })} {t("trial.past")}</p></>}
	</section>;
}

function Output({ site, v, o, refused, reads, hours }: {
	site: Site; v: Tried; o: Tried["outputs"][number]; refused?: { reason: string; count: number }[]; reads: string[];
		hours: number;
}) {
	const would = v.moves.filter(m => m.output === o.output), unit = site.point(o.output)?.unit,
		name = site.title(o.output), other = reads.filter(r => r !== o.output);
	const pasts = other.map(r => past(site, r, hours, 96).past.value);
	const series: Series[] = useMemo(() => [
		...other.flatMap((point, i) => pasts[i] ? [{ point, name: site.title(point), unit: pasts[i].unit, past: pasts[i],
			safe: site.point(point)?.safe ?? false }] : []),
		{ point: t("trial.strip", { name }), unit, safe: o.safe, past: { point: o.output, changes: would } },
		{ point: t("trial.was", { name }), unit, safe: o.safe, past: { point: o.output, changes: o.was.changes } },
	], [v, ...pasts]);
	return <div class="sec"><h4><PointName of={o.output} site={site} /></h4>
		<div class="trio"><Figure label={t("trial.would")} value={number(o.would.moves)}
			unit={t("trial.n", { n: o.would.moves })} />
			<Figure label={t("trial.for")} value={age(o.would.seconds_away)} />
			<Figure label={t("trial.refused")} value={number((refused ?? []).reduce((n, r) => n + r.count, 0))} /></div>
		<Chart series={series} from={Date.parse(v.from)} to={Date.parse(v.to)} label={t("trial.chart", { name })} />
		<p class="small soft">{t("trial.happened", { n: o.was.moves, time: length(o.was.seconds_away) })}
			{!!o.was.seconds_unknown && " " + t("trial.unknown", { time: length(o.was.seconds_unknown) })}</p>
		{refused?.map(r => <p class="small" key={r.reason}><b>{r.count} ×</b> <bdi>{r.reason}</bdi></p>)}
		{would.length > 0 && <details><summary>{t("trial.each")}</summary><ul class="small">
			{would.slice(0, 50).map((m, n) =>
			<li key={n}><span class="soft nw">{dayTime(new Date(m.time))}</span> {worded(m.value, unit)} <bdi>
				{m.cause}</bdi></li>)}</ul></details>}</div>;
}

const Figure = ({ label, value, unit }: { label: string; value: string; unit?: string }) =>
	<div><span class="l">{label}</span><span class="v">{value} {unit && <small>{unit}</small>}</span></div>;
