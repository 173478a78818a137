// What the stop has done, site by site, and its end.

import { Icon, Note, panel, sentence, State, toast, worded } from "./ui";
import { now, sites, type Site } from "./site";
import { stopping, type Stopping } from "./stop";
import { act, acts, Acts } from "./views/parts";
import { length, t, T, timeOf } from "./words";

/** Shows the stop of the sites in view: in full where it is told of, else as a line that leads there. */
export function StopBanner({ reach, full }: { reach: Site[]; full: boolean }) {
	const of = stopping.value.filter(x => reach.includes(x.site) && (x.site.stopped.value || !x.took));
	const rest = reach.filter(s => s.stopped.value && !of.some(x => x.site === s));
	if (!of.length && !rest.length) return null;
	const sent = of.some(x => x.took === undefined && !x.fault);
	const title = !of.length ? t("emergencyStop") : sent ? t("stopSent") : t("emergencyStopAt", { time: timeOf(new Date(performance.timeOrigin + of[0]!.since), true) });
	if (!full) return <Note tone="bad" icon="stopFull"><b>{title}.</b> {t("stopLatched")}</Note>;
	const owned = [...of.map(x => x.site), ...rest].filter(s => s.owner.value && s.stopped.value);
	return <section class="card edge-bad" aria-labelledby="h-stop" data-stopping>
		<div class="head" role="alert"><h2 id="h-stop"><span class="badtext"><Icon n="stopFull" /></span> {title}</h2></div>
		<ul class="list">{of.map(x => <Row x={x} />)}{rest.map(s => <li><div class="grow"><b><bdi>{s.name}</bdi></b></div><State tone="bad" icon="stopFull">{t("stopped")}</State></li>)}</ul>
		<p class="small soft">{t("stopLatched")} {!owned.length && t("endStopWho")}</p>
		{owned.map(x => <Acts key={x.name} site={x} about="stop" />)}
		{owned.length > 0 && !acts.value.some(a => a.about === "stop" && !a.fault) && <div class="btns"><button type="button" class="btn" data-act="endstop" onClick={() => end(owned)}>{t("endStop")}</button></div>}
	</section>;
}

type Stopped = NonNullable<Stopping["outputs"]>[number];
const atSafe = (o: Stopped) => o.value === o.safe && (o.going_to === undefined || o.going_to === o.safe) && (!o.measured || o.measured.value === o.safe);

function Row({ x }: { x: Stopping }) {
	const spent = length((x.took ?? now.value - x.since) / 1000), all = x.outputs ?? [], safe = all.filter(atSafe), blind = all.filter(o => o.set && !o.measured);
	const refused = x.fault === "denied" || x.fault === "missing" || x.fault === "invalid";
	return <li class="top" data-stopped={x.site.name}>
		<div class="grow"><b><bdi>{x.site.name}</bdi></b><br /><span class="small soft">
			{x.outputs ? !all.some(o => o.set) ? t("stopHow", { s: spent }) : t(blind.length ? "stopWritten" : "stopProof", { s: spent, n: blind.length }) : refused ? t("stopRefused")
				: <><T k="stopAsked" n={x.asked} s={spent} />{x.fault && <>. {x.says && <bdi>{sentence(x.says)}</bdi>} <b>{t("stopByHand")}</b></>}</>}</span>
			{all.filter(o => !atSafe(o)).map(o => <><br /><span class="small"><bdi>{o.output}</bdi>: {worded(o.measured?.value ?? o.value)}</span></>)}
		</div>
		{x.outputs ? <State tone={safe.length === all.length ? "ok" : "bad"} icon={safe.length === all.length ? "ok" : "bad"}>{t("stopSafe", { a: safe.length, b: all.length })}</State>
			: x.says ? <State tone="bad" icon="bad">{t("stopUnsure")}</State> : x.fault ? <State tone="unk" icon="unknown">{t("stopNoAnswer")}</State> : <State tone="away" icon="wait">{t("stopWaits")}</State>}
	</li>;
}

function end(of: Site[]): void {
	const silent = sites.value.filter(s => s.gone.value);
	panel({
		title: t("endStopAsk"), yes: t("endStopDo"), no: t("endStopKeep"),
		body: <><p>{t("endStopMore")}</p>{silent.map(s => <Note tone="unk" icon="old"><b><bdi>{s.name}</bdi></b>: {t("noContact")}</Note>)}
			<p class="small soft">{t("confirmInTerminal")}</p></>,
		act: async () => {
			const ended = await Promise.all(of.map(s => act(s, "stop", "owner/reset", {}, t("endStopAct"))));
			if (ended.includes(undefined)) return;
			stopping.value = [];
			toast(t("stopOver"));
		},
	});
}
