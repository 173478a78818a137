// The frame: bar with the stop, navigation, and the view.

import { computed, useSignalEffect } from "@preact/signals";
import { Component, render, type ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { begin } from "./live";
import { href, go, route } from "./route";
import { near, option, print, signIn, state, you } from "./session";
import { Near } from "./views/near";
import { sites, type Site } from "./site";
import { stop } from "./stop";
import { StopBanner } from "./stopping";
import { Icon, Note, opened, panel, PanelHost, spoken, ToastHost } from "./ui";
import { views, type View } from "./views";
import { lang, t, timeOf } from "./words";

const shown = computed<View>(() => views.find(v => v.name === route.value.view) ?? views[0]!);
const scope = computed<Site | undefined>(() => shown.value.scope?.(route.value.q));
const reach = computed<Site[]>(() => scope.value ? [scope.value] : sites.value);
/** The views of the navigation: those for owners where somebody is one. */
const listed = computed(() => views.filter(v => v.nav && (!v.owner || sites.value.some(s => s.owner.value))));
const latched = computed(() => reach.value.length > 0 && reach.value.every(s => s.stopped.value));
/** Whether nothing is heard of any site in view. */
const lost = computed(() => reach.value.length > 0 && reach.value.every(s => s.gone.value > 0));

function press(): void {
	panel(undefined);
	stop(reach.value);
	if (shown.value.name !== "house" && shown.value.name !== "site") go("house");
}

function Stop() {
	const r = reach.value, one = r.length === 1;
	return <button type="button" id="stop" class={"stop" + (latched.value ? " held" : "")} aria-keyshortcuts="Control+." onClick={press} data-stop
		disabled={state.value !== "in"}>
		<b><Icon n="stopFull" />{t(latched.value ? "stopped" : "stop")}</b>
		<span>{latched.value ? t("stopAgain") : one ? <bdi>{r[0]!.name}</bdi> : t("allSites", { n: r.length })}</span>
	</button>;
}

function Net() {
	const gone = lost.value ? Math.min(...reach.value.map(s => s.gone.value)) : 0;
	const s = scope.value, waits = reach.value.some(x => !x.known.value);
	return <div class={"net" + (gone ? " off" : "")} data-net={gone ? "off" : waits ? "wait" : "live"}>
		<Icon n={gone ? "old" : "dot"} /><span>{s && heading() !== s.name && <><bdi>{s.name}</bdi> · </>}
			{gone ? t("noContactFor", { s: gone }) : waits ? t("connecting") : t("live")}</span>
	</div>;
}

/** The title of what is shown. */
const heading = () => route.value.view === "more" ? t("more") : shown.value.title(route.value.q);

function Bar() {
	const back = route.value.view !== "more" && shown.value.back?.(route.value.q);
	return <header class="bar">
		<Stop />
		<a class="skip" href="#main" onClick={e => { e.preventDefault(); document.getElementById("main")!.focus(); }}>{t("skip")}</a>
		{back && <a class="btn bare icon back" href={back} aria-label={t("back")}><Icon n="back" /></a>}
		<div class="where"><h1><bdi>{heading()}</bdi></h1><Net /></div>
	</header>;
}

function siteIcon(s: Site) {
	return s.gone.value || !s.known.value ? "old" : s.stopped.value ? "stopFull" : s.away.value.length ? "away" : "safe";
}

function Nav() {
	const all = listed.value, tabs = all.length > 5 ? 4 : 5, now = shown.value;
	const item = (v: View, wide: boolean) => <li class={wide ? "wide" : ""}>
		<a href={"#" + v.name} aria-current={v === now && route.value.view !== "more" ? "page" : undefined} data-nav={v.name}><Icon n={v.icon} /><span>{v.nav!()}</span><Badge v={v} /></a></li>;
	const site = (s: Site) => <li class="wide"><a href={href("site", { s: s.name })} aria-current={scope.value === s && now.name === "site" ? "page" : undefined}>
		<Icon n={siteIcon(s)} /><span class="grow"><bdi>{s.name}</bdi></span></a></li>;
	return <nav class="main" aria-label={t("views")} inert={!!opened.value}><ul>
		{all.slice(0, tabs).map(v => item(v, false))}
		{all.length > tabs && <li class="thin"><a href="#more" aria-current={route.value.view === "more" || all.indexOf(now) >= tabs ? "page" : undefined}>
			<Icon n="more" /><span>{t("more")}</span></a></li>}
		{all.slice(tabs).map(v => item(v, true))}
		<li class="wide lab" aria-hidden="true">{t("sites")}</li>
		{sites.value.map(site)}
	</ul></nav>;
}

function Badge({ v }: { v: View }) {
	const n = v.badge?.() ?? 0;
	return n ? <span class="n"><span class="sr">, </span>{n}</span> : null;
}

function More() {
	return <ul class="list">{listed.value.slice(4).map(v => <li class="p1"><a class="line" href={"#" + v.name}><Icon n={v.icon} /><span class="grow">{v.nav!()}</span></a></li>)}</ul>;
}

/** Keeps a fault of one view from taking the frame with it. */
class Guarded extends Component<{ of: unknown; children: ComponentChildren }, { fault?: Error; of?: unknown }> {
	static override getDerivedStateFromError(fault: Error) { return { fault }; }
	override render() {
		if (!this.state.fault) return this.props.children;
		return <section class="card edge-bad" data-broken><h3>{t("broken")}</h3><p>{t("brokenMore")}</p><pre>{String(this.state.fault)}</pre>
			<div class="btns"><button type="button" class="btn" onClick={() => this.setState({ fault: undefined })}>{t("showAgain")}</button></div></section>;
	}
}

function Main() {
	const { view, q } = route.value, v = shown.value, main = useRef<HTMLElement>(null), first = useRef(true);
	useEffect(() => {
		document.title = heading() + " · agentsite";
		if (!first.current) {
			scrollTo(0, 0);
			main.current?.focus({ preventScroll: true });
		}
		first.current = false;
	}, [view, q]);
	useSignalEffect(() => {
		if (document.body.classList.contains("gone") !== lost.value) spoken.value = t(lost.value ? "noContact" : "live");
		document.body.classList.toggle("gone", lost.value);
	});
	const waited = useRef(0);
	useSignalEffect(() => {
		const n = sites.value.reduce((n, s) => n + (s.owner.value ? s.approvals.value.length : 0), 0);
		if (n > waited.current) spoken.value = t("waitsForYou");
		waited.current = n;
	});
	const gone = lost.value ? Math.min(...reach.value.map(s => s.gone.value)) : 0;
	return <main id="main" tabIndex={-1} ref={main} inert={!!opened.value}>
		<div class="stack">
			{gone > 0 && <Note tone="unk" icon="old"><b>{t("contactLost", { s: gone })}</b> {reach.value.some(x => x.known.value) ? t("contactLostMore", { time: timeOf(new Date(Date.now() - 1000 * gone), true) }) : t("neverHeard")}</Note>}
			<StopBanner reach={reach.value} full={v.name === "house" || v.name === "site"} />
			<Guarded key={location.hash} of={view}>
				{view === "more" ? <More /> : !sites.value.length && !/^(claim|access)$/.test(v.name) ? <><div class="card"><h3>{t("noSites")}</h3><p>{t("noSitesMore")}</p></div><Near /></> : <v.Show q={q} />}
			</Guarded>
		</div>
	</main>;
}

function Out() {
	const s = state.value;
	return <><header class="bar"><div class="where"><h1>agentsite</h1></div></header><main id="main"><div class="stack one"><div class="card" data-out={s}>
		{s === "wait" ? <p>{t("connecting")}</p> : s === "unreachable" ? <><h2>{t("unreachable")}</h2><p>{t("unreachableMore")}</p>
			<div class="btns"><button type="button" class="btn" onClick={() => location.reload()}>{t("again")}</button></div></>
			: s === "unclaimed" ? <><h2>{t("unclaimed")}</h2><p>{t("unclaimedMore")}</p><pre>agentsite claim agentsite://…</pre><p>{t("unclaimedWhere")}</p></>
			: s === "compare" ? <><h2>{t("print")}</h2><p class="val"><code data-print>{print.value}</code></p><p>{t("printMore")}</p></>
			: s === "old" ? <><h2>{t("old")}</h2><p>{t("oldMore")}</p></>
			: <><h2>{t(s === "expired" ? "outUsed" : "out")}</h2><p>{t(near ? "outNear" : "outMore")}</p>
				<pre>agentsite {near ? `grant phone ${option()}` : "open"}</pre><p class="small soft">{t(near ? "outKept" : "outStop")}</p></>}
	</div></div></main></>;
}

function App() {
	useSignalEffect(() => { document.body.classList.toggle("bare", state.value !== "in"); });
	if (state.value !== "in") return <Out />;
	return <><Bar /><Nav /><Main /><PanelHost /><ToastHost /></>;
}

// Keys. The stop is one with a modifier; single keys lead to views, and can be switched off.

let g = 0;
const letters: Record<string, string> = { h: "house", w: "waiting", t: "talk", r: "rules", j: "journal", a: "access", b: "board" };

export const singleKeys = { get on() { return localStorage.getItem("keys") !== "off"; }, set on(on: boolean) { localStorage.setItem("keys", on ? "on" : "off"); } };

function keysPanel(): void {
	const rows: [string, string][] = [["Ctrl .", t("keyStop")], ...views.filter(v => v.nav).flatMap(v => {
		const l = Object.entries(letters).find(([, n]) => n === v.name);
		return l ? [["g " + l[0], v.nav!()] as [string, string]] : [];
	}), ["← →", t("keyChart")], ["Enter", t("keyHold")], ["Esc", t("keyEsc")], ["?", t("keyThese")]];
	panel({
		title: t("keys"), body: <><dl class="kv">{rows.map(([k, w]) => <><dt><b>{k}</b></dt><dd>{w}</dd></>)}</dl>
			<label class="check"><input type="checkbox" defaultChecked={singleKeys.on} onChange={e => { singleKeys.on = e.currentTarget.checked; }} /><span>{t("singleKeys")}</span></label></>,
	});
}

addEventListener("keydown", e => {
	if (state.value !== "in") return;
	if ((e.ctrlKey || e.metaKey) && e.key === ".") {
		e.preventDefault();
		return press();
	}
	if (e.key === "Escape" && opened.value) return panel(undefined);
	if (e.ctrlKey || e.metaKey || e.altKey || opened.value || e.target instanceof Element && e.target.matches("input,select,textarea")) return;
	if (e.key === "?") return keysPanel();
	if (!singleKeys.on) return;
	if (e.key === "g") {
		g = e.timeStamp;
	} else if (g && e.timeStamp - g < 1200) {
		const v = listed.value.find(x => x.name === letters[e.key]);
		if (v) go(v.name);
		g = 0;
	}
});

if (navigator.serviceWorker) navigator.serviceWorker.onmessage = e => { if (/^#/.test(e.data)) location.hash = e.data; };
document.documentElement.lang = lang;
void signIn().then(() => { if (state.value === "in") begin(you.value); });
render(<App />, document.body);
