// A trial: what a rule would have done over the past, beside what happened.

import { useState } from "preact/hooks";
import type { Scalar, Site } from "../site";
import { Choice, Loading, worded } from "../ui";
import { lang, length, number, t } from "../words";
import { Failed, PointName, useOwner } from "./parts";

interface Use { moves: number; seconds_away: number }
interface Tried {
	from: string; to: string; readings: number;
	rules: { rule: string; mistake?: string; outputs?: (Use & { output: string; refused?: { reason: string; count: number; first: string }[] })[] }[];
	outputs: { output: string; safe: Scalar; would: Use; was: Use & { seconds_unknown?: number; changes?: { time: string; value: Scalar }[] } }[];
	moves: { time: string; output: string; value: Scalar; rule: string; cause?: string }[]; more_moves?: number;
}

const spans = [["1 h", 1], ["24 h", 24], ["7 d", 7 * 24]] as const;

/** The parts of a period, from 0 to 1, in which an output was away from safe. */
export function away(changes: { time: string; value: Scalar }[], safe: Scalar, from: string, to: string): [number, number][] {
	const a = Date.parse(from), whole = Date.parse(to) - a, out: [number, number][] = [];
	let since: number | undefined;
	for (const c of changes) {
		const at = Math.min(1, Math.max(0, (Date.parse(c.time) - a) / whole)), off = c.value !== safe && c.value != null;
		if (off && since === undefined) since = at;
		if (!off && since !== undefined) { out.push([since, at]); since = undefined; }
	}
	return since === undefined ? out : [...out, [since, 1]];
}

const Strip = ({ label, parts }: { label: string; parts: [number, number][] }) => <div class="sec tight"><span class="small soft">{label}</span>
	<svg class="strip" viewBox="0 0 1000 12" preserveAspectRatio="none" role="img" aria-label={t("trial.times", { n: parts.length })}>
		<rect width="1000" height="12" class="off" />{parts.map(([a, b], n) => <rect key={n} x={a * 1000} width={Math.max(2, (b - a) * 1000)} height="12" class="on" />)}</svg></div>;

/** Tries one rule, or a draft, over the hours that a person chooses. */
export function Trial({ site, rule }: { site: Site; rule: string }) {
	const [hours, setHours] = useState<number>(24);
	const [from, setFrom] = useState(() => ago(24));
	const { value: v, fault, again } = useOwner<Tried>(site, "owner/try", { rules: [rule], from });
	const of = v?.rules.find(r => r.rule === rule);
	return <section class="card trial"><div class="head"><h3>{t("trial.title")}</h3></div>
		<Choice label={t("trial.title")} of={spans.map(([text, value]) => ({ text, value }))} chosen={hours} choose={h => { setHours(h); setFrom(ago(h)); }} />
		{fault ? <Failed of={fault} again={again} /> : !v ? <Loading name={site.name} /> : <>
			{of?.mistake && <p class="badtext"><bdi>{of.mistake}</bdi></p>}
			{v.outputs.map(o => {
				const use = of?.outputs?.find(u => u.output === o.output), would = v.moves.filter(m => m.output === o.output);
				return <div class="sec" key={o.output}><h4><PointName of={o.output} /></h4>
					<div class="trio"><Figure label={t("trial.would")} value={number(o.would.moves)} unit={t("trial.n")} />
						<Figure label={t("trial.for")} value={length(o.would.seconds_away)} />
						<Figure label={t("trial.refused")} value={number((use?.refused ?? []).reduce((n, r) => n + r.count, 0))} /></div>
					<Strip label={t("trial.strip")} parts={away(would, o.safe, v.from, v.to)} />
					<Strip label={`${t("trial.was")} ${o.was.moves} ${t("trial.n")}, ${length(o.was.seconds_away)}`} parts={away(o.was.changes ?? [], o.safe, v.from, v.to)} />
					{use?.refused?.map(r => <p class="small" key={r.reason}><span class="badtext">{r.count} ×</span> <bdi>{r.reason}</bdi></p>)}
					{would.length > 0 && <details><summary>{t("trial.each")}</summary><ul class="small">{would.slice(0, 50).map((m, n) =>
						<li key={n}><span class="soft nw">{new Date(m.time).toLocaleString(lang)}</span> {worded(m.value, site.point(m.output)?.unit)} <bdi>{m.cause}</bdi></li>)}</ul></details>}
					{!!o.was.seconds_unknown && <p class="small soft">{t("trial.unknown", { time: length(o.was.seconds_unknown) })}</p>}</div>;
			})}
			<p class="small soft">{t("trial.readings", { n: number(v.readings) })} {t("trial.past")}</p></>}
	</section>;
}

const ago = (hours: number) => new Date(Date.now() - hours * 3600e3).toISOString();

const Figure = ({ label, value, unit }: { label: string; value: string; unit?: string }) =>
	<div><span class="l">{label}</span><span class="v">{value} {unit && <small>{unit}</small>}</span></div>;
