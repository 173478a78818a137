// What waits for a person: calls that an owner has to approve, questions of tasks, drafts, and what waits
// for Enter in the terminal.

import { useEffect, useMemo } from "preact/hooks";
import { href, route } from "../route";
import { answers } from "../session";
import { sites, type Site } from "../site";
import { Button, Countdown, Note, Section, State } from "../ui";
import type { View } from "../views";
import { length, t } from "../words";
import type { Agent } from "./agents";
import type { Entry } from "./journal";
import { acts, Acts, Call, Each, Exactly, Failed, ForOwner, Owners, useAsk, useOwner, When, who, Who } from "./parts";
import type { SignIn, Wish } from "./programs";
import { Loaded } from "./setup";
import { Question, type Task } from "./tasks";

export interface Request {
	handle: string; who: string; tool: string; arguments: Record<string, unknown>; via?: string[];
	seconds_left: number; would_hold_seconds?: number;
}

type Answer = "deny" | "approve";

/** A call that waits, with exactly what is asked. To deny weighs as much as to allow. Without answer an owner does. */
export function Approval({ site, of, done, answer, wait }: { site: Site; of: Request; done: () => void;
	answer?: (as: Answer) => Promise<void>; wait?: boolean }) {
	const came = useMemo(() => performance.now(), [of.seconds_left]);
	const asked = of.arguments?.for_seconds, holds = of.would_hold_seconds;
	return <article class="card edge-acc" data-approval={of.handle}>
		<div class="head"><h3><Who id={of.who} via={of.via} />: <Call of={of}
			site={site} /></h3></div>
		<p class="small soft"><bdi>{site.name}</bdi> · <b><Countdown seconds={of.seconds_left}
			came={came} /></b> {t("waiting.left")}</p>
		{holds !== undefined && (typeof asked !== "number" || holds < asked - 0.5)
			&& <Note tone={typeof asked === "number" ? "away" : ""} icon="old">{t(typeof asked === "number"
				? "onlySoLong" : "waiting.holds", { time: length(holds) })}</Note>}
		<Exactly lines={[["tool", of.tool], ...Object.entries(of.arguments
			?? {}), ["from", of.who], ["via", of.via?.join(", ")], ["handle", of.handle]]} />
		<Acts site={site} about={of.handle} />
		{!acts.value.some(a => a.about === of.handle && !a.fault) && <div class="btns fill eq">
			{(["deny", "approve"] as const).map(m => answer ? <Button key={m} hook={m} why={wait} act={() => answer(m)}
				label={`${t(m === "deny" ? "deny" : "allow")}, ${who(of.who)}`}>
				{t(m === "deny" ? "deny" : "allow")}</Button> : <Owners key={m} site={site} about={of.handle} method={`owner/${m}`}
				params={{ name: of.handle }} done={done}
				label={`${t(m === "deny" ? "deny" : "allow")}, ${who(of.who)}`}>
				{t(m === "deny" ? "deny" : "allow")}</Owners>)}</div>}
	</article>;
}

/** Asks a site for the calls that wait, whenever it tells that one came or went. */
export const useRequests = (site: Site, every = 0) => useOwner<{ requests: Request[]; sign_ins?: SignIn[];
	wishes?: Wish[] }>(site, "owner/requests", {}, every, site.approvals.value);

function Approvals({ site }: { site: Site }) {
	const { value, fault, again } = useRequests(site, 3); // a site does not tell by itself who asks to sign in
	const signIns = value?.sign_ins ?? [], wishes = value?.wishes ?? [];
	useEffect(() => { site.programs.value = [...signIns, ...wishes].map(x => x.handle); }, [value]);
	return <><Failed of={fault} again={again} />
		{signIns.length > 0 && <Loaded part="SignIns" site={site} of={signIns} done={again} />}
		{wishes.length > 0 && <Loaded part="Wishes" site={site} of={wishes} done={again} />}
		<Requests site={site} of={value?.requests} done={again} /></>;
}

/** Calls that wait: first that of a message's link, or that it does not wait any more. */
export function Requests({ site, of, done, answer, wait }: { site: Site; of?: Request[]; done: () => void;
	answer?: (handle: string, as: Answer) => Promise<void>; wait?: boolean }) {
	const { q } = route.value, call = q.get("s") === site.name ? q.get("call") : null;
	const all = of?.toSorted((a, b) => Number(b.handle === call) - Number(a.handle === call));
	return <>{call && all && !all.some(r => r.handle === call) && <Note icon="old"><span data-over>{t("waiting.over")}
		</span></Note>}
		{all?.map(r => <Approval key={r.handle} site={site} of={r} done={done}
			wait={wait} answer={answer && (as => answer(r.handle, as))} />)}</>;
}

function Drafts({ site }: { site: Site }) {
	const { value } = useOwner<{ agents: Agent[] }>(site, "owner/agents", {}, 10);
	return <>{value?.agents.filter(a => a.state === "draft").map(a => <article class="card edge-acc" key={a.name}>
		<h3>{t("waiting.draft")} <bdi>{a.name}</bdi></h3>
		<p class="small soft"><bdi>{site.name}</bdi> · {t("waiting.draft.nothing")}</p>
		<div class="btns"><a class="btn" href={href("rules", { s: site.name })}>{t("look")}</a></div></article>)}</>;
}

function Questions({ site }: { site: Site }) {
	const { value, again } = useAsk(signal => site.conn.tool<{ tasks?: Task[] }>("ask_agent", {}, { signal }), [site],
		5);
	return <>{value?.tasks?.filter(k => k.state === "input_required").map(k => <article class="card edge-acc"
		key={k.id}>
		<div class="head"><h3><bdi>{k.agent}</bdi> {t("tasks.asks")}</h3></div>
		<p class="small soft"><bdi>{site.name}</bdi></p>
		<Question site={site} of={k} done={again} /></article>)}</>;
}

function Answered({ site }: { site: Site }) {
	const { value } = useOwner<{ entries: Entry[] }>(site, "owner/journal", { limit: 200 }, 0, site.approvals.value);
	const list = value?.entries.filter(e => e.tool === "approve" || e.tool === "deny").reverse().slice(0, 8);
	return <>{list?.map(e => <li key={`${site.name} ${e.seq}`} class="top"><When at={e.time} /><div class="grow">
		<Who id={e.arguments?.who} via={e.arguments?.via as string[]} />: <Call of={e.arguments ?? {}} site={site} />
		<span class="small soft block"><bdi>{site.name}</bdi> · <Who id={e.who} /></span></div>
		<State tone="safe" icon={e.tool === "approve" ? "ok" : "no"}>{t(e.tool === "approve" ? "waiting.allowed"
			: "waiting.denied")}</State></li>)}</>;
}

/** The calls of this person that wait for an owner of the site. */
function Own({ site }: { site: Site }) {
	return <>{site.approvals.value.map(a => <article class="card" key={a.handle}>
		<h3><Call of={{ tool: a.tool, arguments: asked(a.arguments) }} site={site} /></h3>
		<p class="small soft"><bdi>{site.name}</bdi> · {t("talk.owner")} <b><Countdown seconds={a.seconds_left}
			came={a.came} /></b></p></article>)}</>;
}

function asked(text: string): Record<string, unknown> {
	try {
		return JSON.parse(text) ?? {};
	} catch {
		return {};
	}
}

const ByKey = ({ site }: { site: Site }) => <Loaded part="Answers" site={site} />;

function Show() {
	const owned = sites.value.filter(s => s.owner.value), others = sites.value.filter(s => !s.owner.value);
	return <div class="two live">
		<Section title={t("waiting.now")}><div class="stack3">
			<Acts />
			<Each of={owned} Show={Approvals} />
			<Each Show={Questions} />
			<Each of={owned} Show={Drafts} />
			<Each of={others} Show={Own} />
			{answers.value && <Each of={others} Show={ByKey} />}
			{owned.length || answers.value ? <p class="small soft">{t("waiting.rest")}</p> : <ForOwner site={sites.value[0]!} />}
		</div></Section>
		{owned.length > 0 && <Section title={t("waiting.answered")}><ul class="list">
			<Each of={owned} Show={Answered} /></ul></Section>}
	</div>;
}

export const waiting: View = {
	name: "waiting", title: () => t("waitsForYou"), icon: "hand", nav: () => t("nav.waiting"), Show,
	badge: () => sites.value.reduce((n, s) => n + (s.owner.value ? s.approvals.value.length : 0), 0),
};
