// Rules: what each does now and why, what it reads and moves, a log of its runs, and a trial on the past
// before a draft is accepted.

import { useState } from "preact/hooks";
import { href } from "../route";
import type { Site } from "../site";
import { Loading, Note, Section, State, Value } from "../ui";
import type { Query, View } from "../views";
import { t } from "../words";
import { AgentState, PauseResume, type Agent } from "./agents";
import { Row, type Entry } from "./journal";
import { Acts, Failed, ForOwner, Owners, PointName, siteIn, useOwner, Which } from "./parts";
import { Trial } from "./trial";

/** The lines of an agent in the text of a configuration: those below its name that are indented further. */
export function definition(text: string, name: string): string {
	const lines = text.split("\n"), agents = lines.findIndex(l => l.startsWith("agents:"));
	const empty = (l: string) => /^\s*(#.*)?$/.test(l), indent = (l: string) => l.search(/\S/);
	const step = lines.find((l, n) => n > agents && !empty(l));
	const start = lines.findIndex((l, n) => agents >= 0 && n > agents && indent(l) === indent(step ?? "")
		&& l.trim().replaceAll('"', "").startsWith(name + ":"));
	if (start < 0) return "";
	const after = lines.findIndex((l, n) => n > start && !empty(l) && indent(l) <= indent(lines[start]!));
	return lines.slice(start, after < 0 ? undefined : after).map(l => l.slice(indent(lines[start]!))).join("\n")
		.trimEnd();
}

function Log({ site, of }: { site: Site; of: Agent }) {
	const { value, fault, again } = useOwner<{ entries: Entry[] }>(site, "owner/journal", { who: of.principal,
		limit: 10 }, 0, of.state, of.says);
	if (!value) return fault ? <Failed of={fault} again={again} /> : <Loading name={site.name} />;
	return value.entries.length ? <ul class="list">{[...value.entries].reverse().map(e => <Row key={e.seq} site={site}
		of={e} />)}</ul>
		: <p class="small soft">{t("rules.log.none")}</p>;
}

function Rule({ site, of, text, again }: { site: Site; of: Agent; text?: string; again: () => void }) {
	const [open, setOpen] = useState(false), [trying, setTrying] = useState(false);
	const reads = (of.reads ?? []).filter(r => !of.moves?.includes(r)), yaml = text && definition(text, of.name);
	return <li class="p1" data-rule={of.name}><details class="rule grow" open={open}
		onToggle={e => setOpen(e.currentTarget.open)}>
		<summary><span class="grow"><span class="head"><b class="name"><bdi>{of.name}</bdi></b><span class="r">
			<AgentState of={of.state} /></span></span>
			{of.description && <span class="block"><bdi>{of.description}</bdi></span>}
			{of.says && <span class="small soft block"><bdi>{of.says}</bdi></span>}
			{of.last_error && <span class="small badtext block"><bdi>{of.last_error}</bdi></span>}</span></summary>
		{open && <div class="inner">
			<dl class="kv">
				{reads.length > 0 && <><dt>{t("rules.reads")}</dt><dd>{reads.map(r => <Now key={r} site={site}
					point={r} />)}</dd></>}
				{!!of.moves?.length && <><dt>{t("rules.moves")}</dt><dd>{of.moves.map(r => <Now key={r} site={site}
					point={r} why />)}</dd></>}
				{of.may && <><dt>{t("rules.may")}</dt><dd class="mono small"><bdi>{of.may}</bdi></dd></>}
				{of.author && <><dt>{t("rules.author")}</dt><dd class="mono small"><bdi>{of.author}</bdi></dd></>}</dl>
			{yaml && <details><summary>{t("rules.written")}</summary><pre class="exact" tabIndex={0}>
				{yaml}</pre></details>}
			<Acts site={site} about={of.name} />
			<div class="btns"><button type="button" class="btn" aria-pressed={trying}
				onClick={() => setTrying(!trying)}>{t("rules.try")}</button>
				<PauseResume site={site} of={of} done={again} /></div>
			{trying && <Trial site={site} rule={of.name} reads={reads} />}
			<section class="sec"><h3>{t("rules.log")}</h3><Log site={site} of={of} /></section></div>}
	</details></li>;
}

/** A point with what it is now, and of an output a way to the reasons. */
function Now({ site, point, why }: { site: Site; point: string; why?: boolean }) {
	return <span class="block"><PointName of={point} site={site} /> <b><Value v={site.value(point).value?.value}
		unit={site.point(point)?.unit} /></b>
		{why && <> <a href={href("why", { s: site.name, p: point })}>{t("why")}</a></>}</span>;
}

/** A rule, or another agent, that does nothing before an owner accepts it, with a permission. A rule is
 *  tried on the past first. */
function Draft({ site, of, again }: { site: Site; of: Agent; again: () => void }) {
	const rule = of.kind === "rule", [tried, setTried] = useState(!rule), [may, setMay] = useState("");
	return <article class="card edge-acc" data-draft={of.name}><div class="head"><h3><bdi>{of.name}</bdi></h3>
		<span class="r"><State tone="acc" icon="ask">{t("agent.draft")}</State></span></div>
		{of.author && <p class="small soft">{t("rules.author")} <bdi class="did">{of.author}</bdi></p>}
		{of.definition && <pre class="exact" tabIndex={0}>{of.definition.trimEnd()}</pre>}
		{of.bound && <dl class="kv small">{Object.entries(of.bound).map(([need, point]) => <>
			<dt class="mono">need/{need}</dt><dd><bdi>{point}</bdi></dd></>)}</dl>}
		{of.wish && <p class="small">{t("rules.wish")} <code><bdi>{of.wish}</bdi></code></p>}
		{!tried ? <Note icon="old">{t("rules.draft.first")}</Note> : <>{rule && <Trial site={site} rule={of.name}
			reads={Object.values(of.bound ?? {})} />}
			<label class="field"><span class="small soft">{t("rules.draft.may")}</span>
				<input class="mono" value={may} onInput={e => setMay(e.currentTarget.value)} autocomplete="off"
					spellcheck={false} /></label></>}
		<Acts site={site} about={of.name} />
		<div class="btns">{rule && <button type="button" class="btn" aria-disabled={tried}
			onClick={() => setTried(true)}>{t("rules.past")}</button>}
			<Owners site={site} about={of.name} method="owner/remove-agent" params={{ name: of.name }} done={again}
				label={`${t("rules.discard")}, ${of.name}`}>{t("rules.discard")}</Owners>
			<Owners site={site} about={of.name} method="owner/accept-agent" params={{ name: of.name, may }} done={again}
				why={!tried || !may} label={`${t("rules.accept")}, ${of.name}`}>
				{t("rules.accept")}</Owners></div></article>;
}

function OfSite({ site }: { site: Site }) {
	const { value, fault, again } = useOwner<{ agents: Agent[] }>(site, "owner/agents", {}, 3);
	const text = useOwner<{ text: string }>(site, "owner/configuration").value?.text;
	if (!value) return fault ? <Failed of={fault} again={again} /> : <Loading name={site.name} />;
	const drafts = value.agents.filter(a => a.state === "draft"), rules = value.agents.filter(a => a.kind === "rule"
		&& a.state !== "draft");
	return <>
		<Failed of={fault} again={again} />
		{drafts.length > 0 && <Section title={t("rules.drafts")} n={drafts.length}><div class="stack3">
			{drafts.map(d => <Draft key={d.name} site={site} of={d} again={again} />)}</div></Section>}
		<Section title={t("nav.rules")} n={rules.length}>
			{rules.length ? <ul class="list">{rules.map(r => <Rule key={r.name} site={site} of={r} text={text}
				again={again} />)}</ul>
				: <p class="soft">{t("rules.none")}</p>}</Section></>;
}

function Show({ q }: { q: Query }) {
	const site = siteIn(q);
	return site ? <div class="stack live"><Which view="rules" q={q} /><ForOwner site={site}><OfSite key={site.name}
		site={site} /></ForOwner></div> : null;
}

export const rules: View = { name: "rules", title: () => t("nav.rules"), icon: "rules", nav: () => t("nav.rules"),
	owner: true, scope: siteIn, Show };
