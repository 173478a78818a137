// The list of the journal. The page hashes its chain, and shows the entries that it read from what it hashed. The
// browser notes the last one, and the chain of the next time has to have it.

import { useEffect, useMemo, useState } from "preact/hooks";
import { Fault, turns } from "../rpc";
import type { Site } from "../site";
import { Button, Choice, Icon, Loading, Note, State } from "../ui";
import type { Query } from "../views";
import { locale, t } from "../words";
import { s } from "../words-setup";
import { Broken, Chain, many, most, type Link, type Page, type Raw } from "./chain";
import { Row, type Entry } from "./journal";
import { Failed, useOwner, who as nameOf, type Called, type Names } from "./parts";
import { Why } from "./why";

interface Noted extends Link { at: string }

/** What is noted of a journal belongs to the key of the site, not to its name. */
const place = (did: string) => `journal ${did}`;

function noted(did: string): Noted | undefined {
	try {
		const n = JSON.parse(localStorage.getItem(place(did)) ?? "null") as Noted | null;
		return n && Number.isSafeInteger(n.seq) && n.seq > 0 && typeof n.hash === "string" ? n : undefined;
	} catch {
		return undefined;
	}
}

function parsed(text?: string): any {
	try {
		return text === undefined ? undefined : JSON.parse(text);
	} catch {
		return undefined;
	}
}

/** Calls with their outcomes, refusals and events, of entries as they were hashed. */
function entriesOf(all: Raw[]): Entry[] {
	const out: Entry[] = [], open = new Map<number, Entry>();
	const end = (e: Entry, of: Raw) => Object.assign(e, { outcome: of.fault || "done", says: of.says,
		result: parsed(of.value), exactly: { ...e.exactly, result: of.value } });
	for (const r of all) {
		const of = open.get(r.of ?? 0);
		if (r.kind === "result") {
			if (of) end(of, r);
			continue;
		}
		const e: Entry = { seq: r.seq, time: new Date(r.at).toISOString(), who: r.who, via: r.via, tool: r.tool,
			arguments: parsed(r.args) as Called & Record<string, unknown> ?? undefined, key: r.key, says: r.says,
			outcome: r.kind, exactly: { arguments: r.args } };
		if (r.kind === "intent") {
			e.outcome = "no result";
			open.set(r.seq, e);
		} else if (r.kind === "done") end(e, r).count = r.count;
		else if (r.kind === "denied") Object.assign(e, { outcome: "refused", says: r.fault, count: r.count });
		out.push(e);
	}
	return out;
}

/** The output that an entry is about. */
const about = (e: Entry) => [e.arguments?.output, e.arguments?.name].find(x => typeof x === "string" && x.includes("/"));

const filters = ["all", "moves", "refused", "owner"] as const;
const moves = ["switch_output", "set_level", "release_output", "emergency_stop"];
const tools = [...moves, "show_text", "capture_image", "ask_agent"];
const chosen: Record<(typeof filters)[number], (e: Entry) => boolean> = {
	all: () => true,
	moves: e => moves.includes(e.tool ?? "") && e.outcome !== "refused",
	refused: e => !["done", "event", "no result"].includes(e.outcome),
	owner: e => !!e.tool && !!e.who && !tools.includes(e.tool),
};

/** How many entries are asked for at first, and then many each time. */
const few = 100;

const begin = (did: string) => {
	const before = noted(did);
	return { before, chain: new Chain(before), turn: turns(1) };
};

/** The chain of a site's journal: the last entries, and older ones as they are asked for. */
function useChain(site: Site, did: string) {
	const [own, anew] = useState(() => begin(did)), [broken, setBroken] = useState<Broken>();
	const [fault, setFault] = useState<Fault>(), [busy, setBusy] = useState(false), [, draw] = useState(0);
	const page = useOwner<Page>(site, "owner/journal", { chain: true, limit: few }, 30);
	const take = (what: (c: Chain) => Promise<void>) => own.turn(async () => {
		try {
			await what(own.chain);
		} catch (e) {
			if (e instanceof Broken) setBroken(e);
			else setFault(e instanceof Fault ? e : new Fault("internal", ""));
		}
		draw(n => n + 1);
	});
	useEffect(() => { if (page.value && !broken) void take(c => c.newest(page.value!)); }, [page.value, own]);
	const { before, chain } = own, { head } = chain;
	const same = !!before && chain.reached <= before.seq;
	const gone = !!before && !!head && before.seq < chain.first;
	useEffect(() => {
		if (head && !broken && (!before || same)) localStorage.setItem(place(did), JSON.stringify({ ...head,
			at: new Date().toISOString() }));
	}, [head?.seq, same, broken]);
	const older = async () => {
		setBusy(true);
		await take(async c => {
			if (c.more && !broken) await c.older(await site.conn.call<Page>("owner/journal", { chain: true, limit: many,
				before: c.before!.seq + 1 }, { timeout: 60_000 }));
		});
		setBusy(false);
	};
	const again = () => {
		setBroken(undefined);
		setFault(undefined);
		anew(begin(did));
		page.again();
	};
	const forget = () => {
		localStorage.removeItem(place(did));
		again();
	};
	const more = chain.more && chain.entries.length < most && !broken;
	return { chain, before, same, gone, broken, more, busy, fault: fault ?? page.fault, older, again, forget };
}

function Proof({ of }: { of: ReturnType<typeof useChain> }) {
	const { chain, before, broken, same, gone } = of;
	const forget = before && <button type="button" class="btn" onClick={of.forget}>
		{s("journal.forget", { seq: before.seq })}</button>;
	if (broken) {
		const { how, from, to } = broken;
		return <div data-chain="broken" data-how={how}><Note tone="bad" icon="bad"><b>{s("chain.broken")}</b>{" "}
			{s(`chain.${how}`, { from, to })}
			<div class="btns"><button type="button" class="btn" onClick={of.again}>{t("again")}</button>
				{(how === "cut" || how === "noted") && forget}</div></Note></div>;
	}
	if (!chain.head) return null;
	const at = before && new Date(before.at).toLocaleDateString(locale);
	return <><p class="small proof" data-chain="whole" data-n={chain.entries.length} data-same={same}><State tone="ok" icon="seal">
		{s("chain.whole", { n: chain.entries.length })}</State>{" "}
		<span class="soft">{!before ? s("journal.noted", { seq: chain.head.seq })
			: same ? s("chain.same", { seq: before.seq, at: at! }) : !gone && s("chain.far", { seq: before.seq, at: at! })}
			</span></p>
		{gone && <Note icon="old"><b>{s("journal.gone")}</b><div class="btns">{forget}</div></Note>}</>;
}

interface Access { site: string; grants: { to?: string; name?: string }[] }

export function Journal({ site, q }: { site: Site; q: Query }) {
	// A site that says another key than its own would leave behind what was noted of it.
	const access = useOwner<Access>(site, "owner/access"), did = site.key ?? access.value?.site;
	const grants = access.value?.grants;
	const names = useMemo(() => new Map(Array.isArray(grants) ? grants.flatMap(g => g?.to && g.name
		? [[String(g.to), String(g.name)]] : []) : []), [grants]);
	if (!did) return access.fault ? <Failed of={access.fault} again={access.again} /> : <Loading name={site.name} />;
	return <Entries key={did} site={site} did={did} q={q} names={names} />;
}

function Entries({ site, did, q, names }: { site: Site; did: string; q: Query; names: Names }) {
	const [which, setWhich] = useState<(typeof filters)[number]>("all"), [output, setOutput] = useState(q.get("p")
		?? ""), [who, setWho] = useState("");
	const [rows, setRows] = useState(few), own = useChain(site, did), { chain } = own;
	const all = entriesOf(chain.entries).reverse();
	const list = all.filter(chosen[which]).filter(e => (!output || about(e) === output) && (!who || e.who === who));
	// What is chosen, or was noted, may be further back.
	const wanted = list.length < Math.min(rows, 25) || !!own.before && !own.same && !own.gone;
	useEffect(() => { if (chain.head && wanted && own.more && !own.busy && !own.fault) void own.older(); });
	useEffect(() => setRows(few), [which, output, who]);
	const fetchOlder = async () => {
		if (list.length < rows + few && own.more) await own.older();
		setRows(rows + few);
	};
	const people = [...new Set(all.map(e => e.who).filter(w => !!w))] as string[];
	const outputs = site.outputs.value.map(o => o.point);
	return <div class={`two l live ${output ? "whyc" : ""}`}>
		<section class="sec">
			<Proof of={own} />
			{own.fault && <Note tone="bad" icon="bad"><b>{t("journal.damaged")}</b> <bdi>{own.fault.message}</bdi>
				<div class="btns"><button type="button" class="btn" onClick={own.again}>
				{t("again")}</button></div></Note>}
			<Choice label={t("journal.filter")} of={filters.map(f => ({ value: f, text: t(`journal.${f}`) }))}
				chosen={which} choose={setWhich} />
			<div class="btns">
				<label class="field inline"><span class="small soft">{t("journal.output")}</span><select value={output}
					onChange={e => setOutput(e.currentTarget.value)}>
					<option value="">{t("journal.any")}</option>{outputs.map(o => <option key={o} value={o}>
						{site.title(o)}</option>)}</select></label>
				<label class="field inline"><span class="small soft">{t("journal.who")}</span><select value={who}
					onChange={e => setWho(e.currentTarget.value)}>
					<option value="">{t("journal.any")}</option>{people.concat(who && !people.includes(who) ? who
						: []).map(w => <option key={w} value={w}>{nameOf(w, undefined, names)}</option>)}</select></label></div>
			{!list.length ? own.busy || !chain.head && !own.fault && !own.broken ? <Loading name={site.name} />
				: <p class="soft">{t("journal.empty")}</p>
				: <ul class="list">{list.slice(0, rows).flatMap((e, n) => [
					(n === 0 || day(list[n - 1]!.time) !== day(e.time)) && <li class="day" key={day(e.time)}><h2>
						{day(e.time)}</h2></li>, <Row key={e.seq} site={site} of={e} names={names} />])}</ul>}
			{(own.more || list.length > rows) && <div class="btns"><Button hook="older" act={fetchOlder}>{t("journal.older")}</Button></div>}
			<p class="small soft"><Icon n="seal" /> {s(chain.more && !own.more && !own.broken ? "chain.most" : "chain.how",
				{ n: most })}</p>
		</section>
		{output && <Why site={site} point={output} />}
	</div>;
}

const day = (at: string) => new Date(at).toLocaleDateString(locale, { weekday: "long", day: "numeric", month: "long" });

