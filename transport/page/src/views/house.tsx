// The house: what is away from safe first, then what waits, then what is not well, then the sites.

import type { View } from "../views";
import { views } from "../views";
import { retryNow } from "../live";
import { backToSafe, End, Holder } from "../output";
import { main, Trio } from "../reading";
import { href } from "../route";
import { now, sites, type Approval, type Point, type Site } from "../site";
import { Age, Button, Icon, Loading, Name, named, Quality, Section, State, worded } from "../ui";
import { age, clock, locale, t, T } from "../words";
import { Near } from "./near";
import { Who } from "./parts";

export const house: View = { name: "house", icon: "house", title: () => t("house"), nav: () => t("house"), Show };

function Show() {
	const all = sites.value, away = all.flatMap(s => s.away.value.map(p => ({ s, p })));
	const waits = all.flatMap(s => s.owner.value ? s.approvals.value.map(a => ({ s, a })) : []);
	const gone = all.filter(s => s.gone.value), ill = all.flatMap(s => s.gone.value ? [] : s.unwell.value.map(p => ({ s, p })));
	const faults = all.flatMap(s => s.gone.value ? [] : (s.status.value?.devices ?? []).flatMap(d => (d.faults ?? []).map(f => ({ s, d: d.device, f }))));
	const known = all.every(s => s.known.value || s.gone.value);
	const quiet = known && !away.length && !waits.length && !gone.length && !ill.length && !faults.length && !all.some(s => s.stopped.value);
	return <div class="two live" data-view="house">
		<div class="stack">
			{!known && <Loading name={all.filter(s => !s.known.value).map(s => s.name).join(", ")} />}
			{quiet && <div class="card" data-allsafe><p class="allsafe"><Icon n="safe" />{t("allSafe")}</p></div>}
			{away.length > 0 && <Section title={t("awayFromSafe")} n={away.length}><ul class="list edge-away">
				{away.map(({ s, p }) => <AwayRow key={s.name + "\n" + p.point} s={s} p={p} many={all.length > 1} />)}</ul></Section>}
			{waits.length > 0 && <Section title={t("waitsForYou")} n={waits.length}><ul class="list edge-acc">
				{waits.map(({ s, a }) => <WaitRow key={a.handle} s={s} a={a} />)}</ul></Section>}
			{gone.length + ill.length + faults.length > 0 && <Section title={t("notWell")} n={gone.length + ill.length + faults.length}>
				{gone.map(s => <Gone key={s.name} s={s} />)}
				{ill.length + faults.length > 0 && <ul class="list edge-unk">{ill.map(({ s, p }) => <Ill key={s.name + "\n" + p.point} s={s} p={p} />)}
					{faults.map(({ s, d, f }) => <li class="top"><div class="grow"><b><Name of={d} /></b><br /><span class="small soft"><bdi>{s.name}</bdi> · <bdi>{f}</bdi></span></div>
						<State tone="bad" icon="bad">{t("faulty")}</State></li>)}</ul>}
			</Section>}
		</div>
		<div class="stack"><Section title={t("sites")} n={all.length}><ul class="list">{all.map(s => <SiteRow key={s.name} s={s} />)}</ul></Section>
			<Near /></div>
	</div>;
}

function AwayRow({ s, p, many }: { s: Site; p: Point; many: boolean }) {
	const r = s.value(p.point).value;
	if (!r) return null;
	return <li class="aw" data-away={p.point}>
		<h3><a href={href("point", { s: s.name, p: p.point })}><bdi>{s.title(p.point)}</bdi> {worded(r.value, p.unit)}
			<br /><span class="small soft"><bdi>{many ? s.name : named(p.point.split("/")[0]!)}</bdi></span></a></h3>
		<Button class="ask" act={backToSafe(s, p)} hook="safe" label={s.title(p.point) + ": " + t("backToSafe")}>{t("backToSafe")}</Button>
		{r.output?.seconds_left !== undefined && <End s={s} r={r} of={p.point} to={worded(p.safe, p.unit)} who={<Holder s={s} of={r.output.held_by} value={r.value} />} />}
	</li>;
}

function WaitRow({ s, a }: { s: Site; a: Approval }) {
	const to = views.some(v => v.name === "waiting") ? href("waiting") : href("site", { s: s.name });
	const left = Math.max(0, a.seconds_left - (now.value - a.came) / 1000);
	return <li class="p1"><a class="line" href={to}><span class="grow"><b><Who id={a.caller} /></b>: <bdi>{wanted(s, a)}</bdi>
		<br /><span class="small soft"><bdi>{s.name}</bdi> · {t("leftToAnswer", { time: clock(left) })}</span></span></a></li>;
}

/** What a call asks for, as its arguments say it. */
function wanted(s: Site, a: Approval): string {
	try {
		const x = JSON.parse(a.arguments), what = x.output ?? x.display ?? x.camera ?? "";
		return [s.title(String(what)), x.on !== undefined ? worded(!!x.on) : x.value !== undefined ? worded(x.value) : x.text, x.for_seconds ? age(x.for_seconds) : ""]
			.filter(y => y !== undefined && y !== "").join(" ");
	} catch {
		return a.tool;
	}
}

function Gone({ s }: { s: Site }) {
	const since = new Date(Date.now() - 1000 * s.gone.value);
	return <article class="card edge-unk" data-gone={s.name}>
		<div class="head"><h3><bdi>{s.name}</bdi></h3><span class="r"><State tone="unk" icon="old">{t("noContactSince", { time: since.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }) })}</State></span></div>
		<p>{s.known.value ? t("valuesOld", { age: age(s.gone.value) }) : t("neverHeard")}</p>
		<div class="btns"><button type="button" class="btn" onClick={retryNow}>{t("again")}</button></div>
	</article>;
}

function Ill({ s, p }: { s: Site; p: Point }) {
	const r = s.value(p.point).value;
	return <li class="p1"><a class="line" href={href("point", { s: s.name, p: p.point })}><span class="grow"><bdi>{s.title(p.point)}</bdi>
		<br /><span class="small soft"><bdi>{s.name}</bdi>{r?.why && <> · <bdi>{r.why}</bdi></>}</span></span><Quality r={r} /></a></li>;
}

function SiteRow({ s }: { s: Site }) {
	const points = s.points.value ?? [], outs = s.outputs.value.length, away = s.away.value.length;
	const chip = s.gone.value ? <State tone="unk" icon="old"><T k="lastSeen" age={<Age at={s.contact.value} />} /></State>
		: !s.known.value ? <State tone="" icon="wait">{t("connecting")}</State>
		: s.stopped.value ? <State tone="bad" icon="stopFull">{t("stopped")}</State>
		: away ? <State tone="away" icon="away">{t("nAway", { n: away })}</State> : outs ? <State tone="safe" icon="safe">{t("allAtSafe")}</State> : null;
	return <li class="p1"><a class={"site-row grow" + (s.gone.value ? " dim" : "")} href={href("site", { s: s.name })} data-site={s.name}>
		<div class="head"><h3><bdi>{s.name}</bdi></h3><span class="r">{chip}</span></div>
		<Trio s={s} of={main(points)} />
		<span class="small soft">{t("nPoints", { n: points.length })} · {t("nOutputs", { n: outs })}{s.status.value?.simulated && " · " + t("simulated")}</span>
	</a></li>;
}
