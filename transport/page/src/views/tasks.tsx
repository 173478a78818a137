// Tasks: what agents were asked for, how far they are, and their questions.

import { useState } from "preact/hooks";
import type { Site } from "../site";
import { Button, Loading, Section, State, type IconName, type Tone } from "../ui";
import type { View } from "../views";
import { has, t } from "../words";
import { Each, Failed, useAsk, When, Who } from "./parts";

export interface Step { does: string; time: string; result?: Record<string, unknown> | null; outcome?: string;
	says?: string }
export interface Task {
	id: string; agent: string; skill?: string; state: string; says?: string; partial?: string; asker?: string;
		context?: string;
	created: string; changed: string; question?: { id: string; text: string; options?: string[] };
	result?: unknown; fault?: string; steps?: Step[]; text?: string;
}

const capabilities = { extensions: { "io.modelcontextprotocol/tasks": {} } };

/** Returns a task whole, with its steps. */
export async function taskOf(site: Site, id: string, signal?: AbortSignal): Promise<Task> {
	const got = await site.conn.call<{ _meta?: Record<string, unknown> }>("tasks/get", { taskId: id },
		{ name: id, signal, meta: { "agentsite/steps": true,
			"io.modelcontextprotocol/clientCapabilities": capabilities } });
	return got._meta?.["agentsite/task"] as Task;
}

export const ended = (k: Task) => ["completed", "failed", "rejected", "canceled"].includes(k.state);

const looks: Record<string, [Tone, IconName]> = {
	submitted: ["safe", "wait"], working: ["acc", "away"], input_required: ["acc", "ask"], auth_required: ["acc",
		"key"],
	completed: ["safe", "ok"], failed: ["bad", "bad"], rejected: ["bad", "no"], canceled: ["safe", "no"],
};

function TaskState({ of }: { of: string }) {
	const [tone, icon] = looks[of] ?? ["unk", "unknown"], key = `tasks.${of}`;
	return <State tone={tone} icon={icon}>{has(key) ? t(key) : of.slice(0, 24)}</State>;
}

/** Asks what a task needs to know. A question for an approval is answered at that. */
export function Question({ site, of, done }: { site: Site; of: Task; done: () => void }) {
	const [text, setText] = useState("");
	const q = of.question;
	if (!q || of.state !== "input_required") return null;
	const answer = async (a: string) => {
		await site.conn.tool("ask_agent", { task: of.id, question: q.id, answer: a, wait_seconds: 0 });
		done();
	};
	return <div class="stack3" data-question={of.id}><p><bdi>{q.text}</bdi></p>
		{q.options?.length ? <div class="btns">{q.options.map(o => <Button key={o} act={() => answer(o)}>
			{o}</Button>)}</div>
			: <div class="btns"><label class="field grow"><span class="sr">{t("tasks.answer")}</span>
				<input value={text} onInput={e => setText(e.currentTarget.value)} autocomplete="off" /></label>
			<Button why={!text} act={() => answer(text)}>{t("tasks.answer")}</Button></div>}</div>;
}

/** What the site recorded of a task. */
export const Steps = ({ of }: { of: Step[] }) => <ul>{of.map((s, n) => <li key={n}><When at={s.time} />
	<span><bdi>{s.does}</bdi>{s.says && <span class={s.outcome === "done" ? "" : "soft block"}>{s.outcome === "done"
		&& ", "}<bdi>{s.says}</bdi></span>}</span>
	{!s.outcome ? <State tone="away" icon="wait">{t("tasks.runs")}</State> : s.outcome === "done" ? <State tone="ok"
		icon="ok">{t("done")}</State>
		: <State tone={s.outcome === "unknown_outcome" ? "unk" : "bad"} icon={s.outcome === "unknown_outcome"
			? "unknown" : "no"}>{outcome(s.outcome)}</State>}</li>)}</ul>;

/** Says a kind of fault that is past. */
export function outcome(kind: string): string {
	const key = `outcome.${kind}`;
	return has(key) ? t(key) : kind.slice(0, 24);
}

/** The words of a task's result: the result where that is a text, or its member text. */
export function words(k: Task): string {
	const text = typeof k.result === "object" && k.result ? (k.result as { text?: unknown }).text : k.result;
	return typeof text === "string" ? text : "";
}

function Whole({ site, of, again }: { site: Site; of: Task; again: () => void }) {
	const { value, fault } = useAsk(signal => taskOf(site, of.id, signal), [site, of.id, of.changed], ended(of) ? 0
		: 2);
	if (!value) return fault ? <Failed of={fault} /> : <Loading name={site.name} />;
	return <><p class="small soft">{t("tasks.asker")} <Who id={value.asker} /> · <span class="mono">
		{value.id}</span></p>
		{value.text && <p><bdi>{value.text}</bdi></p>}
		{value.steps?.length ? <div class="record plain"><Steps of={value.steps} /></div> : null}
		{words(value) ? <p><bdi>{words(value)}</bdi></p>
			: value.result !== undefined && <pre class="exact" tabIndex={0}>
				{JSON.stringify(value.result, null, 1)}</pre>}
		<Question site={site} of={value} done={again} /></>;
}

function Row({ site, of, again }: { site: Site; of: Task; again: () => void }) {
	const [open, setOpen] = useState(of.state === "input_required");
	const cancel = async () => {
		await site.conn.tool("ask_agent", { task: of.id, cancel: true });
		again();
	};
	return <li class="p1" data-task={of.id}><details class="rule grow" open={open}
		onToggle={e => setOpen(e.currentTarget.open)}>
		<summary><span class="grow"><span class="head"><b class="name"><bdi>{of.agent}</bdi></b><span class="r">
			<TaskState of={of.state} /></span></span>
			{(of.says || of.question) && <span class="block"><bdi>{of.says || of.question!.text}</bdi></span>}
			<span class="small soft block"><bdi>{site.name}</bdi> · <When at={of.created} /></span></span></summary>
		{open && <div class="inner"><Whole site={site} of={of} again={again} />
			{!ended(of) && <div class="btns"><Button act={cancel}>{t("tasks.cancel")}</Button></div>}</div>}
	</details></li>;
}

function OfSite({ site }: { site: Site }) {
	const { value, fault, again } = useAsk(signal => site.conn.tool<{ tasks?: Task[]; more?: number }>("ask_agent", {},
		{ signal }), [site], 4);
	if (!value) return !fault ? <Loading name={site.name} /> : fault.kind === "denied" || fault.kind === "invalid"
		|| fault.kind === "missing"
		? <p class="soft"><bdi>{site.name}</bdi>: {t("agent.none")}</p> : <Failed of={fault} again={again} />;
	const list = value.tasks ?? [], live = list.filter(k => !ended(k)), past = list.filter(ended);
	return <>{[live, past].map((some, n) => some.length > 0 && <Section key={n} title={t(n ? "tasks.past"
		: "tasks.live")} n={some.length} end={<bdi class="small soft">{site.name}</bdi>}>
		<ul class="list">{some.map(k => <Row key={k.id} site={site} of={k} again={again} />)}</ul></Section>)}
	{!list.length && <p class="soft"><bdi>{site.name}</bdi>: {t("tasks.none")}</p>}</>;
}

const Show = () => <div class="stack live"><Each Show={OfSite} /><p class="small soft">{t("tasks.past.note")}</p></div>;

export const tasks: View = { name: "tasks", title: () => t("nav.tasks"), icon: "list", nav: () => t("nav.tasks"),
	Show };
