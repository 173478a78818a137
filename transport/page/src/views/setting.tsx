// Adding a part, and editing the configuration. The site drafts, checks and writes.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Fault } from "../rpc";
import { go } from "../route";
import type { Site } from "../site";
import { Button, Loading, Note, says, Section, toast } from "../ui";
import { s } from "../words-setup";
import { options, place, type Option, type Place, type Schema } from "./complete";
import { act, Acts, Failed, useOwner } from "./parts";

export { Answers } from "./answer";
export { Claim } from "./claim";
export { Journal } from "./record";
export { Machine } from "./machine";
export { Phone } from "./phone";
export { Programs, SignIns, Wishes } from "./programs";
export { TellMe, Told } from "./push";

interface Setting { key: string; value: string }
interface Draft { device: string; set: Setting[] }
interface Found { where: string; what: string; confidence: string; says?: string; drafts?: Draft[] }
interface Key { key: string; required?: boolean; takes: string; default?: string; says?: string }
interface Driver { driver: string; is: string; also?: string[]; entry: string; keys?: Key[]; point_keys?: Key[];
	asked?: string[]; wiring?: { position: number; line: string }[] }
interface Mistake { line?: number; column?: number; says: string }
interface Checked { mistakes: Mistake[]; warnings?: string[] }
interface Configuration { file: string; text: string; digest: string }
interface Drafted extends Checked { text: string; digest: string }

const ask = <T,>(site: Site, method: string, params: object, signal?: AbortSignal) =>
	site.conn.call<T>(method, params, { signal, timeout: 60_000 });

/** The lines that differ, with up to two before and after them. */
function changed(before: string, after: string): string[] {
	const lines = (x: string) => x.replaceAll("\r\n", "\n").replace(/\n$/, "").split("\n");
	const old = lines(before), is = lines(after), most = Math.min(old.length, is.length);
	let first = 0, last = 0;
	while (first < most && old[first] === is[first]) first++;
	while (last < most - first && old[old.length - 1 - last] === is[is.length - 1 - last]) last++;
	const marked = (mark: string, x: string[]) => x.map(l => mark + " " + l);
	return first === old.length && first === is.length ? [] : [
		...marked(" ", is.slice(Math.max(0, first - 2), first)), ...marked("-", old.slice(first, old.length - last)),
		...marked("+", is.slice(first, is.length - last)),
		...marked(" ", is.slice(is.length - last, is.length - last + 2)),
	];
}

function Change({ before, after }: { before: string; after: string }) {
	const lines = changed(before, after);
	return <Section title={s("change")}>{lines.length ? <pre class="exact" tabIndex={0} data-change>{lines.join("\n")}
	</pre> : <p class="soft">{s("same")}</p>}</Section>;
}

/** What the site says of a text, each mistake with its line. */
function Says({ of, text, at }: { of: Checked; text: string; at?: (line: number) => void }) {
	const lines = text.split("\n");
	return <>{of.mistakes.length > 0 && <Section title={s("mistakes")} n={of.mistakes.length}><ul class="list edge-bad">
		{of.mistakes.map(m => <li key={m.line + m.says} data-mistake={m.line ?? 0}><div class="grow"><bdi>{m.says}</bdi>
			{!!m.line && <pre class="exact">{m.line} | {lines[m.line - 1]}</pre>}</div>
			{!!m.line && (at ? <button type="button" class="btn" onClick={() => at(m.line!)}>
				{s("line", { n: m.line })}</button> : <span>{s("line", { n: m.line })}</span>)}</li>)}</ul></Section>}
		{!!of.warnings?.length && <Section title={s("warnings")}><ul class="list">
			{of.warnings.map(w => <li key={w}><bdi>{w}</bdi></li>)}</ul></Section>}</>;
}

const Well = ({ on, set }: { on: boolean; set: (on: boolean) => void }) => <label class="check">
	<input type="checkbox" checked={on} onChange={e => set(e.currentTarget.checked)} /><span>{s("well")}</span></label>;

/** Chooses a part: what is found, or a driver. */
function Choose({ site, take }: { site: Site; take: (d: Draft) => void }) {
	const found = useOwner<{ found: Found[]; trouble?: string[] }>(site, "owner/scan"),
		drivers = useOwner<{ drivers: Driver[] }>(site, "owner/drivers"), [word, setWord] = useState("");
	const parts = found.value?.found.flatMap(f => (f.drafts ?? []).map(d => ({ f, d }))) ?? [];
	const is = (d: Driver, w: string) => d.driver.includes(w) || !!d.also?.some(a => a.includes(w));
	const w = word.trim().toLowerCase(), all = w ? drivers.value?.drivers.filter(d => is(d, w)) : undefined;
	all?.sort((a, b) => +(b.driver === w) - +(a.driver === w));
	return <div class="stack">
		<Section title={s("found")} n={found.value && parts.length}>
			{!found.value && !found.fault && <p class="soft" aria-busy="true">{s("looking")}</p>}
			<Failed of={found.fault} again={found.again} />
			{found.value?.trouble?.map(x => <Note icon="unknown" key={x}><bdi>{x}</bdi></Note>)}
			{found.value && !parts.length && <p class="soft">{s("none")}</p>}
			{parts.length > 0 && <ul class="list">{parts.map(({ f, d }) => <li key={f.where + d.device}>
				<div class="grow"><b><bdi>{f.what}</bdi></b>
				<span class="block small soft"><bdi>{f.where} · {f.confidence}</bdi></span>
				{f.says && <span class="block small"><bdi>{f.says}</bdi></span>}</div>
				<Button hook="take" act={() => take(d)}>{s("take")}</Button></li>)}</ul>}</Section>
		<Section title={s("other")}>
			<label class="field"><span>{s("find")}</span><input id="driver" value={word} autocomplete="off"
				spellcheck={false} onInput={e => setWord(e.currentTarget.value)} /></label>
			<Failed of={drivers.fault} again={drivers.again} />
			{all && (all.length ? <ul class="list">{all.slice(0, 8).map(d => <li key={d.driver} data-driver={d.driver}>
				<div class="grow"><b><bdi>{d.driver}</bdi></b>
					<span class="block small soft"><bdi>{d.is}</bdi></span></div>
				<Button hook="take" act={() => take({ device: d.driver.replace(/.*:/, ""),
					set: [{ key: "driver", value: d.driver }] })}>{s("take")}</Button></li>)}</ul>
				: <p class="soft">{s("nothing")}</p>)}</Section></div>;
}

function Field({ of, value, set }: { of: Key; value: string; set: (v: string) => void }) {
	return <label class="field"><span><b>{of.key}</b> <span class="small soft">{of.takes}
		{of.required && ", " + s("needed")}{of.default && ", " + s("usual", { value: of.default })}</span></span>
		<input name={of.key} value={value} autocomplete="off" spellcheck={false} required={of.required}
			onInput={e => set(e.currentTarget.value)} />
		{of.says && <span class="small soft"><bdi>{of.says}</bdi></span>}</label>;
}

/** Asks for the keys of a part, shows the change, and has an owner write it. */
function Fill({ site, from, back }: { site: Site; from: Draft; back: () => void }) {
	const driver = from.set.find(x => x.key === "driver")?.value ?? "";
	const about = useOwner<{ drivers: Driver[] }>(site, "owner/drivers", { name: driver });
	const now = useOwner<Configuration>(site, "owner/configuration");
	const [name, setName] = useState(from.device), [well, setWell] = useState(true);
	const [values, setValues] = useState<Record<string, string>>(
		() => Object.fromEntries(from.set.map(x => [x.key, x.value])));
	const [draft, setDraft] = useState<Drafted>(), [fault, setFault] = useState<Fault>();
	const page = about.value?.drivers.find(d => d.driver === driver) ?? about.value?.drivers[0];
	const keys = [...page?.keys ?? [], ...page?.point_keys ?? []].filter(k => !/[.[]/.test(k.key));
	const known = new Set(["driver", ...keys.map(k => k.key)]);
	const asked = [...keys.filter(k => page?.asked?.includes(k.key)),
		...from.set.filter(x => !known.has(x.key)).map(x => ({ key: x.key, takes: "" }))];
	const set = (key: string) => (v: string) => { setDraft(undefined); setValues({ ...values, [key]: v }); };
	const field = (k: Key) => <Field key={k.key} of={k} value={values[k.key] ?? ""} set={set(k.key)} />;
	const see = async () => {
		now.again();
		setFault(undefined);
		await ask<Drafted>(site, "owner/draft", { device: name, new: true,
			set: Object.entries(values).filter(([, v]) => v.trim()).map(([key, v]) => ({ key, value: v.trim() })) })
			.then(setDraft, setFault);
	};
	// On a small screen what comes of it is below the form.
	const answer = useRef<HTMLDivElement>(null);
	useEffect(() => { if (draft || fault) answer.current?.scrollIntoView({ block: "nearest" }); }, [draft, fault]);
	const write = async () => {
		if (await act(site, "configure", "owner/configure", { text: draft!.text, digest: draft!.digest, well },
			s("add", { name }), { digest: draft!.digest, well })) go("site", { s: site.name });
	};
	if (!page && !about.fault) return <Loading name={site.name} />;
	return <div class="two"><div class="stack">
		<Section title={s("part")} end={<button type="button" class="btn bare" onClick={back}>{s("again")}</button>}>
			<div class="card stack3"><p><b><bdi>{driver}</bdi></b> <bdi class="soft">{page?.is}</bdi></p>
				<Failed of={about.fault} again={about.again} />
				<label class="field"><b>{s("name")}</b><input name="device" value={name} autocomplete="off"
					spellcheck={false}
					onInput={e => { setDraft(undefined); setName(e.currentTarget.value); }} /></label>
				{asked.map(field)}
				<details><summary>{s("more")}</summary><div class="stack3">
					{keys.filter(k => !asked.includes(k)).map(field)}</div></details>
				<div class="btns"><Button class="pri" hook="see" act={see}>{s("see")}</Button></div></div></Section>
		{!!page?.wiring?.length && <Section title={s("wired", { entry: page.entry })}><dl class="card kv">
			{page.wiring.map(w => <><dt>{w.position}</dt><dd><bdi>{w.line}</bdi></dd></>)}</dl></Section>}</div>
		<div class="stack" ref={answer}><Acts site={site} about="configure" /><Failed of={fault} />
			{draft && <><Says of={draft} text={draft.text} />
				{now.value && <Change before={now.value.text} after={draft.text} />}
				<Well on={well} set={setWell} />
				<div class="btns"><Button class="pri" hook="owner/configure" why={draft.mistakes.length > 0}
					act={write}>{s("write")}</Button></div></>}</div></div>;
}

export function Add({ site }: { site: Site }) {
	const [part, take] = useState<Draft>();
	return part ? <Fill site={site} from={part} back={() => take(undefined)} /> : <Choose site={site} take={take} />;
}

/** Completes keys and values at the cursor of a text, by the schema that the site gives: with Ctrl and the blank, or Alt
 *  and the arrow down. The arrows choose then, Enter and Tab take, and Escape closes. */
function useCompletion(site: Site, area: { current: HTMLTextAreaElement | null }, set: (text: string) => void) {
	const schema = useRef<Schema>(undefined), [chosen, choose] = useState(0);
	const [shown, show] = useState<{ at: Place; options: Option[] }>(), [none, setNone] = useState(false);
	const close = () => { show(undefined); setNone(false); };
	const look = () => {
		const a = area.current!, at = place(a.value, a.selectionStart), all = at ? options(schema.current!, at) : [];
		choose(0);
		show(at && all.length ? { at, options: all } : undefined);
		return all.length > 0;
	};
	const open = async () => {
		area.current!.focus();
		try {
			schema.current ??= (await ask<{ schema: Schema }>(site, "owner/schema", {})).schema;
			setNone(!look());
		} catch (e) {
			toast(says(e), true);
		}
	};
	const take = (i: number) => {
		const o = shown?.options[i], a = area.current!;
		if (!o) return;
		a.setRangeText(o.text + (o.key && a.value[a.selectionStart] !== ":" ? ": " : ""), shown.at.from, a.selectionStart,
			"end");
		set(a.value);
		a.focus();
		close();
	};
	const key = (e: KeyboardEvent) => {
		const n = shown?.options.length ?? 0, by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
		if (e.ctrlKey && e.key === " " || e.altKey && e.key === "ArrowDown") void open();
		else if (!shown || e.isComposing) return;
		else if (by) choose(c => (c + by + n) % n);
		else if (e.key === "Enter" || e.key === "Tab" && !e.shiftKey) take(chosen);
		else if (e.key === "Escape") close();
		else {
			if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(e.key)) close();
			return;
		}
		e.preventDefault();
		e.stopPropagation();
	};
	useEffect(() => { if (shown) document.getElementById(`option${chosen}`)?.scrollIntoView({ block: "nearest" }); },
		[chosen, shown]);
	const typed = () => { setNone(false); if (shown) look(); };
	return { options: shown?.options ?? [], chosen, none, open, close, take, key, typed };
}

/** Edits the text, which the site checks as it is typed. */
function Editor({ site, first }: { site: Site; first: Configuration }) {
	const [base, setBase] = useState(first), [text, setText] = useState(first.text), [well, setWell] = useState(true);
	const [checked, setChecked] = useState<Checked & { of: string }>(), [newer, setNewer] = useState<Configuration>();
	const area = useRef<HTMLTextAreaElement>(null), gutter = useRef<HTMLPreElement>(null);
	useEffect(() => {
		const stop = new AbortController();
		const check = () => ask<Checked>(site, "owner/check", { text }, stop.signal)
			.then(c => setChecked({ ...c, of: text }), e => { if (!stop.signal.aborted) toast(says(e), true); });
		const timer = setTimeout(check, 400);
		return () => { clearTimeout(timer); stop.abort(); };
	}, [text]);
	const now = checked?.of === text ? checked : undefined, wrong = new Set(now?.mistakes.map(m => m.line));
	const complete = useCompletion(site, area, setText);
	const at = (line: number) => {
		const a = area.current!, lines = text.split("\n");
		const from = lines.slice(0, line - 1).join("\n").length + +(line > 1);
		a.focus();
		a.setSelectionRange(from, from + (lines[line - 1]?.length ?? 0));
	};
	const save = async () => {
		const done = await act(site, "configure", "owner/configure", { text, digest: base.digest, well }, s("write"),
			{ digest: base.digest, well });
		const is = await ask<Configuration>(site, "owner/configuration", {});
		if (done || is.text === text) setBase(is); // an answer may be lost
		else if (is.digest !== base.digest) setNewer(is);
	};
	return <div class="stack">
		<p class="small soft"><code><bdi>{base.file}</bdi></code></p>
		<div class="editor"><pre ref={gutter} aria-hidden="true">{text.split("\n").map((_, i) =>
			<span key={i} class={wrong.has(i + 1) ? "bad" : ""}>{i + 1}{"\n"}</span>)}</pre>
			<textarea ref={area} aria-label={s("text")} id="text" wrap="off" rows={20} spellcheck={false} value={text}
				aria-invalid={wrong.size > 0} onInput={e => { setText(e.currentTarget.value); complete.typed(); }}
				onKeyDown={complete.key} onBlur={complete.close} aria-autocomplete="list" aria-controls="options"
				aria-activedescendant={complete.options.length ? `option${complete.chosen}` : undefined}
				onScroll={e => { gutter.current!.scrollTop = e.currentTarget.scrollTop; }} /></div>
		<div class="btns"><button type="button" class="btn" data-act="complete" onClick={complete.open}>
			{s("complete")}</button></div>
		<ul class={"list options" + (complete.options.length ? "" : " none")} role="listbox" id="options"
			aria-label={s("complete.of")}>
			{complete.options.map((o, i) => <li key={o.text} id={`option${i}`} role="option" data-option={o.text}
				aria-selected={i === complete.chosen} onMouseDown={e => e.preventDefault()}
				onClick={() => complete.take(i)}><div class="grow"><b><bdi>{o.text}</bdi></b>{o.says &&
				<span class="block small soft"><bdi>{o.says}</bdi></span>}</div></li>)}</ul>
		{complete.none && <p role="status" class="soft">{s("complete.none")}</p>}
		<div role="status" class="soft" data-checked={now ? now.mistakes.length : ""}>
			{!now ? s("checking") : !now.mistakes.length && s("right")}</div>
		{now && <Says of={now} text={text} at={at} />}
		{newer && <Note tone="away" icon="bad"><span data-conflict>{s("conflict")}</span><div class="btns">
			<Button act={() => { setBase(newer); setNewer(undefined); }}>{s("keep")}</Button>
			<Button act={() => { setBase(newer); setText(newer.text); setNewer(undefined); }}>
				{s("drop")}</Button></div></Note>}
		<Change before={base.text} after={text} />
		<Acts site={site} about="configure" />
		<Well on={well} set={setWell} />
		<div class="btns"><Button class="pri" hook="owner/configure" act={save}
			why={!now || now.mistakes.length > 0 || text === base.text || !!newer}>{s("write")}</Button></div></div>;
}

export function Edit({ site }: { site: Site }) {
	const { value, fault, again } = useOwner<Configuration>(site, "owner/configuration");
	const [first, setFirst] = useState<Configuration>();
	if (value && !first) setFirst(value);
	return first ? <Editor site={site} first={first} /> : fault ? <Failed of={fault} again={again} />
		: <Loading name={site.name} />;
}
