// Permissions: chosen by points and limits or written in words, and what the words mean.

import { useId } from "preact/hooks";
import { home } from "../session";
import { named, type Site } from "../site";
import { sentence } from "../ui";
import { length, locale } from "../words";
import { s } from "../words-setup";
import { useAsk, type Answer } from "./parts";

export interface Words { may: string; until: string }

interface Part { word: string; tools: string[]; points?: string[]; range?: [number, number]; max_seconds?: number;
	calls?: number; per_seconds?: number; confirm?: boolean }
interface Meaning extends Words { parts: Part[] }

/** Asks what words mean. The program that serves the page reads them, as it does when it signs them. */
export const useMeaning = ({ may, until }: Words): Answer<Meaning> => useAsk(home.value
	&& (signal => home.value!.call<Meaning>("permission/read", { may, until }, { signal })), [may, until]);

/** A name within a sentence, whose direction ends with it. */
const isolated = (name: string) => `\u2068${name}\u2069`;

const verbs = ["read", "set", "show", "capture", "stop", "ask"] as const;
type Verb = (typeof verbs)[number];
const isVerb = (word: string): word is Verb => (verbs as readonly string[]).includes(word);

const kinds: Record<string, string[]> = { set: ["switch", "level"], show: ["text"], capture: ["image"] };

/** The points of a site that a word of permissions is about. */
const pointsFor = (site: Site, word: string) => (site.points.value ?? []).filter(p => word === "read"
	|| kinds[word]?.includes(p.kind));

function place(site: Site, word: string, pattern: string): string {
	if (pattern === "*") return s(word === "set" ? "may.outputs" : word === "ask" ? "may.agents" : "may.all");
	if (site.point(pattern)) return isolated(site.title(pattern));
	const there = word === "ask" || site.points.value?.some(p => p.point.startsWith(pattern + "/"));
	return there ? isolated(named(pattern)) : s("may.gone", { what: isolated(pattern) });
}

function says(site: Site, p: Part): string {
	const limits = [
		p.range && s("may.range", { a: p.range[0], b: p.range[1] }),
		p.max_seconds && s("may.max", { time: length(p.max_seconds) }),
		p.calls && s("may.rate", { n: p.calls, time: length(p.per_seconds ?? 0) }),
		p.confirm && s("may.confirm"),
	].filter(x => x).join(",");
	const what = (p.points ?? []).map(x => place(site, p.word, x)).join(", ");
	return isVerb(p.word) ? s(`may.${p.word}`, { what, limits })
		: s("may.use", { tools: p.tools.map(isolated).join(", "), what: what || s("may.all"), limits });
}

/** What a permission means, in a sentence; end is a time or never. */
export function Sentence({ site, of, end }: { site: Site; of: Meaning; end?: string }) {
	const until = end === undefined ? "" : end === "never" ? s("may.never")
		: s("may.until", { end: new Date(end).toLocaleString(locale, { dateStyle: "long", timeStyle: "short" }) });
	const parts = of.parts.map(p => s("may.may", { what: says(site, p) }));
	return <span data-sentence>{sentence(parts.join(", ") + until)}</span>;
}

/** What a program asks for, by the words of permissions, in terms of a site's points. */
export function Asks({ site, of }: { site: Site; of: string[] }) {
	return <ul class="small">{of.filter(isVerb).map(word => {
		const names = pointsFor(site, word).map(p => isolated(site.title(p.point)));
		const what = word === "read" ? s("may.points", { n: names.length }) : word === "ask" ? s("may.agents")
			: names.length > 8 ? names.slice(0, 8).join(", ") + " …" : names.join(", ") || s("may.nothing");
		return <li key={word}>{sentence(s(`may.${word}`, { what, limits: "" }))}</li>;
	})}</ul>;
}

/** The parts of a permission as they are written, each in its words. */
const partsOf = (may: string) => may.split(",").map(p => p.trim().split(/\s+/)).filter(p => p[0]);
const written = (parts: string[][]) => parts.map(p => p.join(" ")).join(", ");

const lengths = ["10s", "30s", "1m", "2m", "5m", "10m", "30m", "1h", "2h", "12h"];
const rates = ["1/h", "4/h", "10/h", "30/h", "1/d", "4/d", "10/d"];
const seconds = (text: string) => parseInt(text || "0") * { s: 1, m: 60, h: 3600, d: 86400 }[text.at(-1) as "s"];

function rate(text: string): string {
	const [n, per] = text.split("/") as [string, string];
	return s("may.times", { n: Number(n), time: length(seconds(/^\d/.test(per) ? per : "1" + per)) });
}

/** One of a few values, none, or another one that is written. */
function Limit({ label, value, of, text, set }: { label: string; value: string; of: string[];
	text: (v: string) => string; set: (v: string) => void }) {
	return <label class="field inline"><span class="small soft">{label}</span><select value={value}
		onChange={e => set(e.currentTarget.value)}><option value="">{s("may.limit.none")}</option>
		{(value && !of.includes(value) ? [value, ...of] : of).map(v => <option key={v} value={v}>{text(v)}</option>)}
	</select></label>;
}

/** A check box for one part of a permission, with its limits where it is chosen. */
function Pick({ label, word, point, may, set }: { label: string; word: Verb; point?: string; may: string;
	set: (may: string) => void }) {
	const parts = partsOf(may), at = parts.findIndex(p => p[0] === word && (!point || p[1] === point));
	const part = parts[at], limits = part?.slice(point ? 2 : 1) ?? [], moves = word === "set";
	const longest = limits.includes("max") ? limits[limits.indexOf("max") + 1] ?? "" : "";
	const often = limits.find(x => /^\d+\//.test(x)) ?? "", range = limits.find(x => x.includes(".."));
	const ask = limits.includes("confirm");
	const put = (longest: string, often: string, ask: boolean) => {
		const one = [word, point, range, longest && "max", longest, often, ask && "confirm"].filter(x => x) as string[];
		// The first part that covers a call decides: one point comes before all.
		const before = at >= 0 ? at : parts.findIndex(p => p[0] === word && point !== "*");
		set(written(parts.toSpliced(before < 0 ? parts.length : before, at >= 0 ? 1 : 0, one)));
	};
	return <div data-pick={`${word} ${point ?? ""}`.trim()}><label class="check"><input type="checkbox" checked={at >= 0}
		onChange={e => e.currentTarget.checked ? put(moves ? "2m" : "", moves ? "10/h" : "", false)
			: set(written(parts.filter(p => p !== part)))} /><span>{label}</span></label>
		{at >= 0 && moves && <div class="btns">
			<Limit label={s("may.longest")} value={longest} of={lengths} text={v => length(seconds(v))}
				set={v => put(v, often, ask)} />
			<Limit label={s("may.often")} value={often} of={rates} text={rate} set={v => put(longest, v, ask)} />
			<label class="check"><input type="checkbox" checked={ask} onChange={e => put(longest, often,
				e.currentTarget.checked)} /><span>{s("may.ask.each")}</span></label></div>}</div>;
}

/** Points that may be read, where not all may. */
function Readable({ site, may, set }: { site: Site; may: string; set: (may: string) => void }) {
	const parts = partsOf(may), at = parts.findIndex(p => p[0] === "read"), chosen = parts[at]?.[1]?.split("+") ?? [];
	if (chosen.includes("*")) return null;
	const put = (points: string[]) => set(written([...points.length ? [["read", points.join("+"),
		...parts[at]?.slice(2) ?? []]] : [], ...parts.filter((_, n) => n !== at)]));
	return <details open={chosen.length > 0}><summary>{s("may.some")}</summary>
		{pointsFor(site, "read").map(p => <label key={p.point} class="check"><input type="checkbox"
			checked={chosen.includes(p.point)} onChange={e => put(e.currentTarget.checked ? [...chosen, p.point]
				: chosen.filter(x => x !== p.point))} /><span><bdi>{site.title(p.point)}</bdi></span></label>)}</details>;
}

/** Lets a person write a permission, by what they choose or in words, and says what it means. */
export function Permission({ site, words, set, meaning, usual }: { site: Site; words: Words; set: (w: Words) => void;
	meaning: Answer<Meaning>; usual?: string }) {
	const id = useId(), may = (m: string) => set({ ...words, may: m }), pick = { may: words.may, set: may };
	const field = (name: "may" | "until", label: string, usual?: string, list?: string) => <label class="field">
		<b>{label}</b><input class="mono" name={name} value={words[name]} placeholder={usual} list={list} autocomplete="off"
			autocapitalize="off" spellcheck={false} onInput={e => set({ ...words, [name]: e.currentTarget.value })} /></label>;
	const fault = meaning.fault?.message;
	return <div class="stack3" data-permission>
		<div><Pick word="read" point="*" label={s("may.pick.read")} {...pick} /><Readable site={site} {...pick} />
			<Pick word="set" point="*" label={s("may.pick.set")} {...pick} />
			{(["set", "show", "capture"] as const).flatMap(word => pointsFor(site, word).map(p => <Pick key={word + p.point}
				word={word} point={p.point} label={s(`may.pick.${word}.one`, { what: isolated(site.title(p.point)) })}
				{...pick} />))}
			<Pick word="ask" point="*" label={s("may.pick.ask")} {...pick} />
			<Pick word="stop" label={s("may.pick.stop")} {...pick} /></div>
		{field("may", s("may.words"), usual)}{field("until", s("may.ends"), s("may.usual"), id)}
		<datalist id={id}>{["today", "tomorrow", "7d", "30d", "90d", "never"].map(v => <option key={v} value={v} />)}
		</datalist>
		<p aria-live="polite">{fault ? <span class="badtext" data-mistake><bdi>{sentence(fault)}</bdi></span>
			: meaning.value && <b><Sentence site={site} of={meaning.value} end={meaning.value.until} /></b>}</p></div>;
}
