// The agents that sites host: what they are, what they may do, and how they are.

import { href } from "../route";
import type { Site } from "../site";
import { Button, Loading, Section, State, toast, type IconName, type Tone } from "../ui";
import { has, t } from "../words";
import { Acts, Each, Failed, Owners, useAsk, useOwner } from "./parts";

/** An agent as an owner sees it. Of a draft there are the definition, the points that its needs are here,
 *  and the permission that its author wishes for. */
export interface Agent {
	name: string; kind: string; principal: string; description?: string; may?: string; reads?: string[];
		moves?: string[];
	author?: string; definition?: string; bound?: Record<string, string>; wish?: string;
	state: string; says?: string; last_error?: string; failed_ago?: number;
}

/** An agent as those see it who may ask it. */
export interface AskedAgent { name: string; description?: string; skills: { id: string; description?: string;
	input?: { required?: string[] } }[] }

export const talks = (a: AskedAgent) => a.skills.some(s => s.id === "talk");

/** Asks a site which agents this person may ask. A site without one has no such tool. */
export const useAsked = (site: Site | undefined) => useAsk(site && (async signal => {
	const { agents } = await site.conn.tool<{ agents?: AskedAgent[] }>("ask_agent", {}, { signal });
	return Array.isArray(agents) ? agents.filter(a => Array.isArray(a?.skills)) : [];
}), [site]);

const looks: Record<string, [Tone, IconName]> = {
	idle: ["safe", "safe"], waits: ["safe", "wait"], holds: ["away", "away"], yields: ["safe", "pause"],
		paused: ["safe", "pause"],
	draft: ["acc", "ask"], failed: ["bad", "bad"], runs: ["safe", "safe"],
};

export function AgentState({ of }: { of: string }) {
	const [tone, icon] = looks[of] ?? ["unk", "unknown"], key = `agent.${of}`;
	return <State tone={tone} icon={icon}>{has(key) ? t(key) : of.slice(0, 24)}</State>;
}

/** Has an owner pause or resume an agent. */
export function PauseResume({ site, of, done }: { site: Site; of: Agent; done: () => void }) {
	const paused = of.state === "paused";
	return <Owners site={site} about={of.name} method={paused ? "owner/resume" : "owner/pause"}
		params={{ name: of.name }} done={done}
		label={`${t(paused ? "agent.resume" : "agent.pause")}, ${of.name}`}>{t(paused ? "agent.resume"
			: "agent.pause")}</Owners>;
}

function Row({ site, of: a, can, again }: { site: Site; of: Agent; can?: AskedAgent; again: () => void }) {
	const ask = async (skill: string) => {
		await site.conn.tool("ask_agent", { agent: a.name, skill, wait_seconds: 0 });
		toast(t("agent.asked"));
		location.hash = href("tasks");
	};
	return <li class="p1" data-agent={a.name}><div class="card flat grow">
		<div class="head"><h3><bdi>{a.name}</bdi></h3>{a.kind && <span class="small soft">{a.kind}</span>}{a.state
			&& <span class="r"><AgentState of={a.state} /></span>}</div>
		{a.description && <p><bdi>{a.description}</bdi></p>}
		{a.says && <p class="small soft"><bdi>{a.says}</bdi></p>}
		{a.last_error && <p class="small badtext"><bdi>{a.last_error}</bdi></p>}
		{a.may && <details><summary>{t("agent.may", { name: a.name })}</summary><p class="mono small"><bdi>
			{a.may}</bdi></p></details>}
		<Acts site={site} about={a.name} />
		<div class="btns">{can && talks(can) && <a class="btn" href={href("talk", { s: site.name, a: a.name })}>
			{t("agent.talk")}</a>}
			{can?.skills.filter(s => s.id !== "talk" && !s.input?.required?.length).map(s =>
				<Button key={s.id} act={() => ask(s.id)}>{t("agent.ask")}{s.id !== "run" && <>: <bdi>
					{s.id}</bdi></>}</Button>)}
			{site.owner.value && a.principal && <PauseResume site={site} of={a} done={again} />}</div>
	</div></li>;
}

function OfSite({ site }: { site: Site }) {
	const asked = useAsked(site), owned = useOwner<{ agents: Agent[] }>(site, "owner/agents", {}, 5);
	if (!asked.value && !asked.fault && !owned.value) return <Loading name={site.name} />;
	// An owner sees all but the rules, which have a view of their own; others see those that they may ask.
	const all: Agent[] = owned.value?.agents.filter(a => a.kind !== "rule" && a.state !== "draft")
		?? (asked.value ?? []).map(a => ({ name: a.name, kind: "", principal: "", state: "",
			description: a.description }));
	return <Section title={<bdi>{site.name}</bdi>} n={all.length}>
		<Failed of={owned.fault} again={owned.again} />
		{all.length ? <ul class="list">{all.map(a => <Row key={a.name} site={site} of={a}
			can={asked.value?.find(m => m.name === a.name)} again={owned.again} />)}</ul>
			: <p class="soft">{t("agent.none")}</p>}</Section>;
}

export const Agents = () => <div class="stack live"><Each Show={OfSite} /></div>;
