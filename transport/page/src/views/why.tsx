// Why: who holds a point, what ends that, what forbids a change, and what happened to it last.

import type { Output, Scalar, Site } from "../site";
import { Icon, Loading, Note, worded } from "../ui";
import { href } from "../route";
import type { Query, View } from "../views";
import { length, t } from "../words";
import { act, Acts, BackToSafe, Failed, Held, PointName, siteIn, useAsk, When, Who, who } from "./parts";
import { outcome } from "./tasks";

interface Change {
	time: string; value: Scalar; held_by?: string; because?: string; by?: string; via?: string[]; tool?: string;
	outcome?: string; says?: string; times?: number;
}

interface Explained {
	point: string; value: Scalar; unit?: string; why?: string;
	output?: {
		safe?: Scalar; max_seconds?: number; limits?: string; confirm?: string; held_by?: string;
		going_to?: Scalar; needs?: string; returned_because?: string; effect?: Output["effect"]; waits_for_reset?: boolean;
	};
	holder_name?: string; via?: string[]; held_seconds?: number; other?: Scalar; refused?: string;
	changes?: Change[]; required_by?: string[]; used_by?: string[];
}

/** A panel about one point. It asks again when what is told of the point changes. */
export function Why({ site, point }: { site: Site; point: string }) {
	const r = site.value(point).value;
	const { value: w, fault, again } = useAsk(signal => site.conn.tool<Explained>("explain_point", { point },
		{ signal }),
		[site, point, r?.value, r?.quality, r?.output?.held_by, r?.output?.state, r?.output?.effect]);
	if (!w) return <section class="sec why"><h2>{t("why")} <PointName of={point} site={site} /></h2>
		{fault ? <Failed of={fault} again={again} /> : <Loading name={site.name} />}</section>;
	const o = w.output, held = !!o?.held_by, say = (v: Scalar) => worded(v, w.unit);
	return <section class="sec why" data-why={point}><h2>{t("why")} <PointName of={point}
		site={site} /> {say(w.value)}</h2>
		<div class="card">
		{o && <p class="big">{held ? <><b><Who id={o.held_by} via={w.via} site={site} /></b>
			{w.held_seconds !== undefined && ", " + t("why.since", { time: length(w.held_seconds) })}</>
				: t("why.nobody")}</p>}
		{held && <Held site={site} output={point} />}
		{w.why && <p><bdi>{w.why}</bdi></p>}
		{o?.going_to != null && <p>{t("why.going", { value: say(o.going_to) })}</p>}
		{o?.returned_because && <p>{t("why.returned")} <bdi>{o.returned_because}</bdi></p>}
		{o?.effect && <p>{t(`effect.${o.effect}`)}</p>}
		{o?.needs && <p>{t("why.needs")} <bdi>{o.needs}</bdi></p>}
		{o?.waits_for_reset && site.owner.value && !site.stopped.value && <><Acts site={site} about="reset" />
			<div class="btns"><button type="button" class="btn" data-act="reset" onClick={() => act(site, "reset", "owner/reset", {},
				t("why.reset"))}>{t("why.reset")}</button></div></>}
		{w.refused ? <Note icon="no">{t("why.refused", { value: say(w.other) })} <bdi>{w.refused}</bdi></Note>
			: w.other != null && <p class="small soft">{t("why.can", { value: say(w.other) })}</p>}
		{!!w.changes?.length && <ul class="tl">{w.changes.map((c, n) => <Moved key={n} of={c} safe={o?.safe}
			say={say} site={site} />)}</ul>}
		{o && <dl class="kv small"><dt>{t("safe")}</dt><dd>{say(o.safe)}</dd>
			<dt>{t("atOnce")}</dt><dd>{o.max_seconds ? length(o.max_seconds) : t("why.max.none")}</dd>
			{o.limits && <><dt>{t("limits")}</dt><dd><bdi>{o.limits}</bdi></dd></>}
			{o.confirm && <><dt>{t("why.confirm")}</dt><dd>{t("why.confirm.owner")}</dd></>}
			{!!w.used_by?.length && <><dt>{t("usedBy")}</dt><dd>{w.used_by.map(x => who(x)).join(", ")}</dd></>}
			{!!w.required_by?.length && <><dt>{t("why.required")}</dt><dd>{w.required_by.map(p => <span class="block"
				key={p}><PointName of={p} site={site} /></span>)}</dd></>}</dl>}
		{held && <div class="btns fill"><BackToSafe site={site} output={point} /></div>}
	</div></section>;
}

function Moved({ of: c, safe, say, site }: { of: Change; site: Site; safe?: Scalar; say: (v: Scalar) => string }) {
	const failed = !!c.outcome && c.outcome !== "done" && c.outcome !== "running", by = c.by ?? c.held_by;
	const icon = failed ? c.outcome === "unknown_outcome" ? "unknown" : "no" : safe !== undefined && c.value !== safe
		? "away" : "safe";
	return <li><When at={c.time} /><span class="ic soft"><Icon n={icon} /></span><span>
		<b>{say(c.value)}</b>{failed && `: ${outcome(c.outcome!)}`}{(c.times ?? 0) > 1 && ` × ${c.times}`}
		<span class="small soft block">{by && <Who id={by} via={c.via} site={site} />} <bdi>{c.because}</bdi> <bdi>
			{c.says}</bdi></span></span></li>;
}

function Show({ q }: { q: Query }) {
	const site = siteIn(q), point = q.get("p");
	return site && point ? <div class="stack one live"><Why key={`${site.name} ${point}`} site={site}
		point={point} /></div> : null;
}

export const why: View = { name: "why", title: () => t("why"), icon: "ask", scope: siteIn, back: q => href("site",
	{ s: q.get("s") ?? "" }), Show };
