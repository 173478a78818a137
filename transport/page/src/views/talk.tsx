// Talk: a conversation with an agent. What the model writes is in a bubble; what the site recorded is a
// full-width band, which no text can make.

import { useEffect, useRef, useState } from "preact/hooks";
import { href } from "../route";
import { Fault } from "../rpc";
import { awayFrom, type Scalar, type Site } from "../site";
import { Button, Icon, says, State, worded } from "../ui";
import type { Query, View } from "../views";
import { t } from "../words";
import { Agents, talks, useAsked, type Agent, type AskedAgent } from "./agents";
import { BackToSafe, Held, PointName, siteIn, useAsk, useOwner } from "./parts";
import { ended, outcome, Question, Steps, taskOf, words, type Step, type Task } from "./tasks";
import { Approval, useRequests } from "./waiting";

/** The name of the conversation in this tab, which outlives a reload. */
function contextOf(site: string, agent: string, anew = false): string {
	const key = `talk ${site} ${agent}`;
	let context = sessionStorage.getItem(key);
	if (!context || anew) sessionStorage.setItem(key, context = `page-${crypto.randomUUID()}`);
	return context;
}

interface Moved { output: string; value: Scalar; state?: number }
const moved = (s: Step): Moved | undefined => s.outcome === "done" && typeof s.result?.output === "string"
	? s.result as unknown as Moved : undefined;

/** What a step moved, while the agent holds it. */
function Move({ site, of, holder, agent }: { site: Site; of: Moved; holder: string; agent: string }) {
	const r = site.value(of.output).value, p = site.point(of.output), by = r?.output?.held_by;
	if (!p || !by || holder && by !== holder || !awayFrom(p, r)) return null;
	return <article class="card edge-away mid" data-moved={of.output}><div class="head"><h3>
		<PointName of={of.output} site={site} /> {worded(r!.value, p.unit)}</h3>
		<span class="r"><State tone="away" icon="away">{t("awayFromSafe")}</State></span></div>
		<Held site={site} output={of.output} who={<bdi>{agent}</bdi>} />
		<div class="btns fill"><BackToSafe site={site} output={of.output} /></div></article>;
}

/** The site's own record of a task. */
function Band({ site, of }: { site: Site; of: Task }) {
	const steps = of.steps ?? [], answer = of.result as { foreign?: string; note?: string } | undefined;
	if (!steps.length && !ended(of)) return null;
	return <section class="record" aria-label={t("talk.record", { site: site.name })} data-record={of.id}>
		<div class="r0"><Icon n="seal" /><span>{t("talk.record", { site: site.name })}</span><span class="soft light">
			{t("talk.record.by")}</span></div>
		{steps.length ? <Steps of={steps} />
			: <p class="nd"><State tone="safe" icon="no">{t("talk.nothing")}</State><span>
				{t("talk.nothing.says", { agent: of.agent })}</span></p>}
		{answer?.foreign && <p>{t("talk.foreign")} <bdi>{answer.foreign}</bdi></p>}{answer?.note && <p><bdi>
			{answer.note}</bdi></p>}
	</section>;
}

function Turn({ site, of, holder, done }: { site: Site; of: Task; holder: string; done: () => void }) {
	const outputs = new Map((of.steps ?? []).map(moved).filter(m => m !== undefined).map(m => [m.output, m]));
	const said = words(of) || of.partial;
	return <>
		<p class="me"><span class="sr">{t("talk.you")} </span><bdi>{of.text}</bdi></p>
		{[...outputs.values()].map(m => <Move key={m.output} site={site} of={m} holder={holder} agent={of.agent} />)}
		{of.state === "auth_required" && (site.owner.value ? <InPlace site={site} task={of.id} done={done} /> : <p
			class="it soft">{t("talk.owner")}</p>)}
		{of.state === "input_required" && <article class="card edge-acc mid"><Question site={site} of={of}
			done={done} /></article>}
		{said ? <p class="it"><span class="sr"><bdi>{of.agent}</bdi>: </span><bdi>{said}</bdi></p>
			: !ended(of) && of.state !== "input_required" && <p class="it soft" aria-busy="true">{t("talk.works")}</p>}
		{of.fault && <p><State tone="bad" icon="bad">{outcome(of.fault)}</State> <bdi>{of.says}</bdi></p>}
		{of.state === "canceled" && <p class="small soft">{t("tasks.canceled")}</p>}
		<Band site={site} of={of} />
	</>;
}

/** The calls of a task that wait for the owner, where they were asked. */
function InPlace({ site, task, done }: { site: Site; task: string; done: () => void }) {
	const { value, again } = useRequests(site);
	return <>{value?.requests.filter(r => r.via?.includes(`task/${task}`)).map(r =>
		<div class="mid" key={r.handle}><Approval site={site} of={r} done={() => { again(); done(); }} /></div>)}</>;
}

function Conversation({ site, agent }: { site: Site; agent: AskedAgent }) {
	const [context, setContext] = useState(() => contextOf(site.name, agent.name));
	const [turns, setTurns] = useState<Task[]>([]), [text, setText] = useState(""), [fault,
		setFault] = useState<unknown>(), [pending, setPending] = useState("");
	const self = useOwner<{ agents: Agent[] }>(site, "owner/agents", {}, 0, turns.length)
		.value?.agents.find(a => a.name === agent.name);
	const end = useRef<HTMLDivElement>(null);
	const put = (k: Task) => setTurns(old => old.some(o => o.id === k.id) ? old.map(o => o.id === k.id ? k : o)
		: [...old, k]);

	// After a reload, the turns of the conversation come from the site.
	useAsk(async signal => {
		const { tasks } = await site.conn.tool<{ tasks?: Task[] }>("ask_agent", {}, { signal });
		for (const k of (tasks ?? []).filter(k => k.context === context).reverse()) put(await taskOf(site, k.id,
			signal));
	}, [site, context]);

	// What has not ended is asked for again, a second after the answer.
	const live = turns.filter(k => !ended(k)).map(k => k.id).join(" ");
	const follow = useAsk(live ? async signal => {
		for (const id of live.split(" ")) put(await taskOf(site, id, signal));
	} : undefined, [site, live], 1);
	useEffect(() => { end.current?.scrollIntoView({ block: "nearest" }); }, [turns.length, pending, live]);

	const send = async (e: Event) => {
		e.preventDefault();
		const say = text.trim();
		if (!say || pending) return;
		setPending(say);
		setText("");
		setFault(undefined);
		const key = crypto.randomUUID();
		const once = () => site.conn.tool<Task>("ask_agent", { agent: agent.name, skill: "talk", text: say, context,
			wait_seconds: 0 }, { meta: { "agentsite/idempotency-key": key } });
		try { // a lost answer is asked for again by the same key, which finds the same task
			put(await taskOf(site, (await once().catch(e => { if (e instanceof Fault
				&& e.kind === "offline") return once(); throw e; })).id));
		} catch (e) {
			setFault(e);
			setText(say);
		}
		setPending("");
	};
	const anew = () => { setContext(contextOf(site.name, agent.name, true)); setTurns([]); };
	const cancel = async () => {
		for (const id of live.split(" ")) await site.conn.tool("ask_agent", { task: id, cancel: true });
		follow.again();
	};

	return <div class="two l talkc">
		<details class="card may" open={innerWidth >= 1024}><summary>{t("agent.may", { name: agent.name })}</summary>
			<dl class="kv">
			{agent.description && <><dt>{t("talk.is")}</dt><dd><bdi>{agent.description}</bdi></dd></>}
			{self?.may && <><dt>{t("talk.may")}</dt><dd class="mono small"><bdi>{self.may}</bdi></dd></>}
			<dt>{t("talk.never")}</dt><dd>{t("talk.never.says")}</dd>
			{self?.says && <><dt>{t("talk.now")}</dt><dd><bdi>{self.says}</bdi></dd></>}</dl></details>
		<div class="talk"><h2 class="sr">{t("talk.with", { agent: agent.name })}</h2>
			{!turns.length && !pending && <p class="soft">{t("talk.empty")}</p>}
			{turns.map(k => <Turn key={k.id} site={site} of={k} holder={self?.principal ?? ""} done={follow.again} />)}
			{pending && <p class="me"><span class="sr">{t("talk.you")} </span><bdi>{pending}</bdi></p>}
			{fault !== undefined && <p class="badtext" role="alert"><bdi>{says(fault)}</bdi></p>}
			<div class="end" ref={end} />
			<form class="say" onSubmit={send}><label class="sr" for="msg">
				{t("talk.message", { agent: agent.name })}</label>
				<input id="msg" value={text} onInput={e => setText(e.currentTarget.value)}
					placeholder={t("talk.placeholder", { agent: agent.name })} autocomplete="off" maxLength={4000} />
				{live ? <Button act={cancel}>{t("cancel")}</Button> : <button class="btn pri" aria-disabled={!!pending}>
					{t("talk.send")}</button>}
			</form>
			{turns.length > 0 && <div class="btns"><button type="button" class="btn bare" onClick={anew}>
				{t("talk.anew")}</button></div>}
		</div></div>;
}

/** The conversation with the agent that the fragment names; else the list of all agents. */
function Show({ q }: { q: Query }) {
	const site = q.has("a") ? siteIn(q) : undefined, agent = useAsked(site).value?.find(a => a.name === q.get("a")
		&& talks(a));
	return site && agent ? <Conversation key={`${site.name} ${agent.name}`} site={site} agent={agent} /> : <Agents />;
}

export const talk: View = {
	name: "talk", title: q => q.get("a") ?? t("nav.talk"), icon: "talk", nav: () => t("nav.talk"),
		scope: q => q.has("a") ? siteIn(q) : undefined,
	back: q => q.has("a") ? href("talk") : "", Show,
};
