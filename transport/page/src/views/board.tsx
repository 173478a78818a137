// Board: what is wrong with the site's devices, its version, its configuration, and what listens.

import { href } from "../route";
import type { Site } from "../site";
import { Loading, Section, State } from "../ui";
import type { Query, View } from "../views";
import { length, t } from "../words";
import { Acts, Failed, ForOwner, Owners, siteIn, useAsk, useOwner, Which } from "./parts";
import { Loaded } from "./setup";

interface Status {
	site: string; version: string; uptime_seconds: number; simulated?: boolean; emergency_stop: boolean;
	devices: { device: string; model: string; faults?: string[] }[];
	outputs_not_ready?: { output: string; rest_seconds?: number; needs?: string }[];
}

interface Carrier { kind: string; address: string; routes?: string[]; public?: string[] }

function Listens({ site }: { site: Site }) {
	const { value, fault, again } = useOwner<{ carriers: Carrier[]; methods: string[] }>(site, "owner/routes");
	if (!value) return fault ? <Failed of={fault} again={again} /> : <Loading name={site.name} />;
	return <Section title={t("board.listens")} n={value.carriers.length}>
		<ul class="list">{value.carriers.map(c => <li class="p1" key={c.kind + c.address}><details class="rule grow">
			<summary><span class="grow">
			<b>{c.kind}</b><span class="small soft block mono"><bdi>{c.address}</bdi></span></span></summary>
			<div class="inner">{c.routes?.length ? <>
				{!!c.public?.length && <><p class="small">{t("board.public")}</p><pre class="exact" tabIndex={0}>
					{c.public.join("\n")}</pre></>}
				<p class="small">{t("board.routes")}</p><pre class="exact tall" tabIndex={0}>
					{c.routes.filter(r => !c.public?.includes(r)).join("\n")}</pre></>
				: <p class="small soft">{t("board.socket")}</p>}</div></details></li>)}</ul></Section>;
}

function Configuration({ site }: { site: Site }) {
	const health = useOwner<{ configuration?: string }>(site, "owner/health"),
		{ value } = useOwner<{ text: string }>(site, "owner/configuration");
	return <Section title={t("board.configuration")}><div class="card">
		<p>{health.value?.configuration ? <code><bdi>{health.value.configuration}</bdi></code> : t("board.demo")}</p>
		{value && <details><summary>{t("board.text")}</summary><pre class="exact tall" tabIndex={0}>
			{value.text}</pre></details>}
		<Acts site={site} about="reload" />
		{health.value?.configuration && <div class="btns">
			<a class="btn" href={href("add", { s: site.name })} data-act="add">{t("setup.add")}</a>
			<a class="btn" href={href("edit", { s: site.name })} data-act="edit">{t("setup.edit")}</a><Owners site={site} about="reload" method="owner/reload"
			params={{}} done={() => {}}>{t("board.reload")}</Owners></div>}
	</div></Section>;
}

function OfSite({ site, q }: { site: Site; q: Query }) {
	const { value: s, fault, again } = useAsk(signal => site.conn.tool<Status>("site_status", {}, { signal }), [site],
		10);
	if (!s) return fault ? <Failed of={fault} again={again} /> : <Loading name={site.name} />;
	const wrong = s.devices.filter(d => d.faults?.length), well = s.devices.filter(d => !d.faults?.length);
	return <div class="two live"><div class="stack"><Which view="board" q={q} />
		{fault && <Failed of={fault} again={again} />}
		<Section title={t(wrong.length ? "notWell" : "board.devices")} n={(wrong.length ? wrong : well).length}>
			{wrong.length > 0 && <ul class="list edge-bad">{wrong.map(d => <li key={d.device}><div class="grow"><h3>
				<bdi>{d.device}</bdi></h3>
				<p class="small soft"><bdi>{d.model}</bdi></p>{d.faults?.map(f => <p key={f}><bdi>{f}</bdi></p>)}</div>
					<State tone="bad" icon="bad">{t("faulty")}</State></li>)}</ul>}
			<ul class="list">{well.map(d => <li key={d.device}><div class="grow"><bdi>{d.device}</bdi><br />
				<span class="small soft"><bdi>{d.model}</bdi></span></div>
				<State tone="safe" icon="safe">{t("well")}</State></li>)}</ul></Section>
		<Section title={t("board.program")}><dl class="card kv"><dt>{t("board.version")}</dt><dd><bdi>
			{s.version}</bdi></dd>
			<dt>{t("board.uptime")}</dt><dd>{length(s.uptime_seconds)}</dd>
			{s.simulated && <><dt>{t("board.kind")}</dt><dd>{t("board.simulated")}</dd></>}</dl></Section>
		{site.owner.value && <Configuration site={site} />}</div>
		<ForOwner site={site}><div class="stack"><Loaded part="Machine" site={site} q={q} />
			<Listens site={site} /></div></ForOwner></div>;
}

function Show({ q }: { q: Query }) {
	const site = siteIn(q);
	return site ? <OfSite key={site.name} site={site} q={q} /> : null;
}

export const board: View = { name: "board", title: () => t("nav.board"), icon: "board", nav: () => t("nav.board"),
	scope: siteIn, Show };
