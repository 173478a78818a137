// What several views share: asking, acts of an owner, and calls in words.

import { signal } from "@preact/signals";
import { Component, type ComponentChild, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { backToSafe, End } from "../output";
import { confirm, type Offer } from "../passkey";
import { Fault } from "../rpc";
import { href } from "../route";
import { you } from "../session";
import { sites, type Scalar, type Site } from "../site";
import { Button, Name, Note, says, sentence, short, toast, worded } from "../ui";
import type { Query } from "../views";
import { dayTime, length, locale, t, timeOf } from "../words";
import type { Told } from "./phone";

export interface Answer<T> { value?: T; fault?: Fault; again(): void }

const asFault = (e: unknown) => e instanceof Fault ? e : new Fault("internal", String(e));

/** Asks when the component is shown, when deps change, and again every so many seconds; nothing while the
 *  page is hidden. */
export function useAsk<T>(ask: ((signal: AbortSignal) => Promise<T>) | undefined, deps: unknown[],
	every = 0): Answer<T> {
	const [answer, set] = useState<{ value?: T; fault?: Fault }>({});
	const [round, setRound] = useState(0);
	useEffect(() => {
		if (!ask) return;
		const stop = new AbortController();
		let timer: ReturnType<typeof setTimeout>;
		const go = async () => {
			if (document.hidden) return document.addEventListener("visibilitychange", go, { once: true,
				signal: stop.signal });
			try {
				const value = await ask(stop.signal);
				if (!stop.signal.aborted) set({ value });
			} catch (e) {
				if (!stop.signal.aborted) set(old => ({ value: old.value, fault: asFault(e) }));
			}
			if (every && !stop.signal.aborted) timer = setTimeout(go, every * 1000);
		};
		void go();
		return () => { stop.abort(); clearTimeout(timer); };
	}, [...deps, round]);
	return { ...answer, again: () => setRound(n => n + 1) };
}

/** Asks a site for an owner's method that only reads. */
export const useOwner = <T,>(site: Site, method: string, params: object = {}, every = 0,
	...deps: unknown[]): Answer<T> =>
	useAsk(site.owner.value ? signal => site.conn.call<T>(method, params, { signal, timeout: 60_000 }) : undefined,
		[site, site.owner.value, method, JSON.stringify(params), ...deps], every);

/** An act of an owner that waits for a person, or was refused. An offer is of a passkey; told is of a phone. */
export interface Act { about: string; site: string; method: string; params: object; says: string; fault?: Fault;
	offer?: Offer; told?: Told; signal: AbortSignal; cancel(): void }
export const acts = signal<Act[]>([]);

/** Does an owner's act, which takes until somebody confirms it in the terminal of agentsite open, or by a
 *  passkey. Returns the answer, or nothing where it was not done. Of long parameters a part is shown. */
export async function act<T = object>(site: Pick<Site, "name" | "conn">, about: string, method: string, params: object,
	says: string, shown = params): Promise<T | undefined> {
	const stop = new AbortController();
	const one: Act = { about, site: site.name, method, params: shown, says, signal: stop.signal,
		cancel: () => { stop.abort(); without(one); } };
	const set = (more: Partial<Act>) => { acts.value = acts.value.map(a => a === one ? Object.assign(one, more) : a); };
	acts.value.find(a => a.about === about && a.site === site.name)?.cancel();
	acts.value = [...acts.value, one];
	try {
		const answer = await site.conn.call<T>(method, params, { signal: stop.signal, timeout: 0, on: n => {
			if (n.method === "notifications/agentsite/confirm") set({ offer: n.params });
			if (n.method === "notifications/agentsite/phone") {
				set({ told: n.params, ...n.params.link ? {} : { params: n.params } });
			}
		} });
		without(one);
		stop.abort(); // a passkey that is still asked
		toast(t("act.done", { what: says }));
		return answer;
	} catch (e) {
		const f = asFault(e); // without an answer it may have been confirmed and done
		if (!stop.signal.aborted) set({ fault: f.kind === "offline" && !f.message ? new Fault("unknown_outcome", "") : f });
		return undefined;
	}
}

const without = (one: Act) => { acts.value = acts.value.filter(a => a !== one); };

/** Lines of what others wrote, without characters that hide or turn others. */
const plain = (...lines: string[]) => lines.map(l => l.replace(/[\p{Cc}\p{Cf}]/gu,
	c => "\\u" + c.codePointAt(0)!.toString(16).padStart(4, "0"))).join("\n");

/** The acts about something, at its place; without about, those that no call which waits shows. */
export function Acts({ site, about }: { site?: { name: string }; about?: string }) {
	const shown = acts.value.filter(a => about !== undefined ? a.about === about && a.site === site?.name
		: !(a.told?.link && !a.fault) // nobody is asked yet
		&& !sites.value.some(s => s.name === a.site && (s.approvals.value.some(x => x.handle === a.about)
			|| s.programs.value.includes(a.about))));
	return <>{shown.map(a => a.fault
		? <Note tone={a.fault.kind === "unknown_outcome" ? "unk" : "bad"} icon={a.fault.kind === "unknown_outcome" ? "unknown"
			: "bad"} key={a.about}><b>{t(a.fault.kind === "unknown_outcome" ? "act.unknown" : "act.failed",
			{ what: a.says })}</b> <bdi>
			{a.fault.kind === "denied" && a.fault.message ? sentence(a.fault.message) : says(a.fault)}</bdi>
			<div class="btns"><button type="button" class="btn" onClick={a.cancel}>{t("close")}</button></div></Note>
		: <Note icon="key" key={a.about}><b>{t(a.offer ? "passkey.or" : "confirmInTerminal")}</b> {t("act.exactly")}
			<pre class="exact">{a.offer ? plain(a.offer.site, `${a.offer.method}: ${a.offer.description}`, a.offer.params)
				: `${a.site}\n${a.method}\n${JSON.stringify(a.params, null, 1)}`}</pre>
			{a.offer?.call && <>{t("passkey.call")}<pre class="exact">{plain(a.offer.call.who, a.offer.call.tool,
				a.offer.call.arguments, ...a.offer.call.via ?? [])}</pre></>}
			{a.offer?.change && <pre class="exact">{plain(...a.offer.change.lines ?? [], "SHA-256 " + a.offer.change.digest)}</pre>}
			<div class="btns">{a.offer && <Button class="pri" hook="passkey" act={() => confirm(a.offer!, a.signal)}>
				{t("passkey.use")}</Button>}<button type="button" class="btn" onClick={a.cancel}>
				{t("cancel")}</button></div></Note>)}</>;
}

/** Has an owner do something; the acts about it are shown where Acts stands. */
export function Owners({ site, about, method, params, done, children, label, why }: {
	site: Pick<Site, "name" | "conn">; about: string; method: string; params: object; done: () => void;
		children: string; label?: string; why?: boolean;
}) {
	return <Button why={why} label={label} hook={method} act={async () => { if (await act(site, about, method, params,
		label ?? children)) done(); }}>{children}</Button>;
}

export const Failed = ({ of, again }: { of?: Fault; again?: () => void }) => of
	? <Note tone="bad" icon="bad"><bdi>{says(of)}</bdi>
		{again && <div class="btns"><button type="button" class="btn" onClick={again}>
			{t("again")}</button></div>}</Note> : null;

/** Shows its children to owners, and everybody else who can see them. */
export const ForOwner = ({ site, children }: { site: Site; children?: ComponentChildren }) => site.owner.value ? <>
	{children}</>
	: <Note icon="key">{t("owner.only")} <code>agentsite open</code></Note>;

/** Keeps what one site tells from breaking the view of the others. */
class Guarded extends Component<{ name: string; children: ComponentChildren }, { fault?: Error }> {
	static override getDerivedStateFromError(fault: Error) { return { fault }; }
	override render() {
		return this.state.fault ? <Note tone="bad" icon="bad"><b><bdi>{this.props.name}</bdi></b>: {t("broken")}</Note>
			: this.props.children;
	}
}

/** Shows the same of several sites. */
export const Each = ({ of = sites.value, Show }: { of?: Site[]; Show: ComponentType<{ site: Site }> }) =>
	<>{of.map(s => <Guarded key={s.name} name={s.name}><Show site={s} /></Guarded>)}</>;

/** The site of a view: the one that the fragment names, or the first that this person owns, or sees. */
export const siteIn = (q: Query): Site | undefined => q.has("s") ? sites.value.find(s => s.name === q.get("s"))
	: sites.value.find(s => s.owner.value) ?? sites.value[0];

/** Lets a person choose the site of a view, where there are several. */
export const Which = ({ view, q }: { view: string; q: Query }) => sites.value.length < 2 ? null
	: <label class="field"><span class="small soft">{t("site")}</span>
		<select value={siteIn(q)?.name} onChange={e => { location.hash = href(view, { s: e.currentTarget.value }); }}>
			{sites.value.map(s => <option key={s.name} value={s.name}>{s.name}</option>)}</select></label>;

/** The name of a point, which says its address to a pointer. */
export const PointName = ({ of, site }: { of: string; site?: Site }) =>
	<span title={of}><Name of={site?.title(of) ?? short(of)} /></span>;

/** What ends the hold of an output, where something does. */
export function Held({ site, output, who }: { site: Site; output: string; who?: ComponentChild }) {
	const r = site.value(output).value, p = site.point(output);
	return r?.output?.seconds_left === undefined ? null : <End s={site} r={r} of={output} to={worded(p?.safe, p?.unit)}
		who={who} />;
}

/** Sends an output back to its safe value. */
export const BackToSafe = ({ site, output }: { site: Site; output: string }) => {
	const p = site.point(output);
	return p ? <Button class="pri" hook="safe" act={backToSafe(site, p)}>{t("backToSafe")}</Button> : null;
};

/** What the owners of a site call the holders of keys, by did:key. */
export type Names = ReadonlyMap<string, string>;

/** Names a principal, and those through whom it asked. */
export function Who({ id, via, site, names }: { id?: string; via?: string[]; site?: Site; names?: Names }) {
	const own = names?.get(id ?? ""), people = via?.filter(v => !v.startsWith("task/") && v !== own);
	return <bdi title={id}>{who(id, site, names)}{people?.length
		? ` (${t("who.for", { who: people.map(x => who(x, site, names)).join(", ") })})` : ""}</bdi>;
}

export function who(id?: string, site?: Site, names?: Names): string {
	const [kind, rest] = (id ?? "").split(/:(.*)/s);
	if (!id || id === "site") return t("who.site");
	if (id === (site?.you ?? you.value)) return t("you");
	if (id === "local" || id === "token") return t(`who.${id}`);
	if (kind === "token") return rest!.replace(/\.[0-9a-f]{8}$/, "");
	if (id.startsWith("did:key:")) return names?.get(id) ?? "…" + id.slice(-8);
	return kind === "rule" ? t("who.rule", { name: rest! }) : rest || id;
}

export interface Called { tool?: string; arguments?: Record<string, unknown>; who?: string }

/** A call of a tool, or an act of an owner, in words. Of what is not known here it shows the name. */
export function Call({ of, site }: { of: Called; site?: Site }) {
	const a = of.arguments ?? {}, point = a.output ?? a.display ?? a.camera ?? a.point, name = <bdi>
		{String(a.name ?? "")}</bdi>;
	const about = typeof point === "string" ? <PointName of={point} site={site} />
		: t("call.move"); // of refusals that were counted
	switch (of.tool) {
		case "switch_output": case "set_level":
			return <>{about} {typeof point === "string" && <>
				{worded((a.on ?? a.value) as Scalar, site?.point(point)?.unit)}
				{typeof a.for_seconds === "number" && " " + t("for", { time: length(a.for_seconds) })}</>}</>;
		case "release_output": return <>{about} {t("call.release")}</>;
		case "show_text": return <>{about}: <bdi>{String(a.text ?? "")}</bdi></>;
		case "emergency_stop": return <b>{t("call.stop")}</b>;
		case "ask_agent": return <>{t("call.ask", { agent: String(a.agent ?? "") })} <bdi>
			{String(a.text ?? "")}</bdi></>;
		case "approve": case "deny":
			return <>{t(`call.${of.tool}`)} <Who id={a.who as string} />: <Call of={a as Called} site={site} /></>;
		case "reset": return <>{t("call.reset")}</>;
		case "reload": case "configure": return <>{t("call.reload")}</>;
		case "take-over": return <>{t("call.takeover")} <PointName of={String(a.name ?? "")} site={site} /></>;
		case "token": case "grant": return <>{t("call.grant")} {name}</>;
		case "revoke": case "pause": case "resume": return <>{t(`call.${of.tool}`)} {name}</>;
		case "clock --set": case "clock": return <>{t("call.clock")}</>;
	}
	return <><code><bdi>{of.tool}</bdi></code> {a.name !== undefined && name}</>;
}

/** A call as it is: the tool and its arguments. */
export const Exactly = ({ lines }: { lines: [string, unknown][] }) => <details><summary>{t("exactly")}</summary>
	<pre class="exact" tabIndex={0}>{lines.filter(([, v]) => v !== undefined && v !== "").map(([k, v]) =>
		`${k.padEnd(12)} ${typeof v === "string" ? v : JSON.stringify(v)}`).join("\n")}</pre></details>;

/** A moment by the site's clock: its time of day, and its date where that is not today. */
export function When({ at }: { at: string }) {
	const d = new Date(at);
	return <time dateTime={at} title={d.toLocaleString(locale)} class="small soft nw">
		{d.toDateString() === new Date().toDateString() ? timeOf(d, true) : dayTime(d)}</time>;
}
