// An output: its card in every state, and its row.

import { useComputed, useSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { ComponentChild } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Fault } from "./rpc";
import { href } from "./route";
import { ageOf, left, move, release, type Aged, type Point, type Reading, type Scalar, type Site } from "./site";
import { Age, Button, Choice, Countdown, Hold, type IconName, Lease, Note, panel, sentence, State, toast, type Tone, useFocusLeft, Value, worded } from "./ui";
import { views } from "./views";
import { clock, length, locale, t, T } from "./words";

/** What explain_point says of an output, and of the move that it was asked about. */
export interface Why {
	output?: { max_on?: Allowance; duty?: Allowance; seconds_left?: number };
	holder_name?: string; refused?: string; refused_kind?: string; refused_seconds?: number; would_hold_seconds?: number; came: number;
}
interface Allowance { left_seconds: number; of_seconds: number; in_seconds?: number; assumed_seconds?: number }

/** The state of an output, as shape and word. */
export type Kind = "safe" | "held" | "moving" | "wait" | "bad" | "rest" | "no" | "look" | "stopped" | "unknown";

const slow = 3; // seconds, after which what was set should be measured

export function kindOf(s: Site, p: Point, r: Reading | undefined): Kind {
	if (!r || r.quality !== "good" || r.value === undefined) return "unknown";
	const o = r.output ?? {};
	if (o.fault) return "bad";
	if (o.set && o.measured && o.set.value !== o.measured.value && o.going_to === undefined) return ageOf(o.set, r.came) > slow ? "bad" : "wait";
	if (o.going_to !== undefined && o.going_to !== r.value) return "moving";
	if (r.value !== p.safe) return "held";
	if (o.held_by !== undefined) return "wait";
	if (s.stopped.value) return "stopped";
	if (left(o.rest_seconds, r.came)) return "rest"; // no site tells that it is over
	return o.needs ? "no" : "safe";
}

const look: Record<Kind, [Tone, IconName, Parameters<typeof t>[0], string]> = {
	safe: ["safe", "safe", "safe", ""], held: ["away", "away", "awayFromSafe", "edge-away"], moving: ["away", "away", "moving", "edge-away"],
	wait: ["away", "wait", "notMeasured", "edge-away"], bad: ["bad", "bad", "notAsSet", "edge-bad"], rest: ["safe", "rest", "resting", ""],
	no: ["safe", "no", "notPossible", ""], look: ["safe", "safe", "safe", ""], stopped: ["bad", "stopFull", "stopped", "edge-bad"],
	unknown: ["unk", "unknown", "unknown", "edge-unk"],
};

/** Who holds an output, or did something, in words. With the value: who brought it there. */
export function Holder({ s, of, value }: { s: Site; of?: string; value?: Scalar }): ComponentChild {
	if (!of) return null;
	if (of === s.you) return t(value === true ? "youOn" : value === undefined ? "you" : "youSet");
	const [kind, name] = of.split(/:(.*)/s);
	if (kind === "rule") return <T k="theRule" name={<bdi>{name}</bdi>} />;
	if (of === "local") return t("heldLocal");
	if (of === "token") return t("heldToken");
	if (kind === "did") return <bdi>{of.slice(0, 14) + "…" + of.slice(-4)}</bdi>;
	return <bdi>{name || of}</bdi>;
}

const verb = (p: Point) => p.kind === "switch" ? t(p.safe === true ? "turnOff" : "turnOn") : t("set");

/** Lengths to choose from, the longest at most max. */
export function lengths(max: number | undefined): number[] {
	const all = [5, 10, 30, 60, 300, 600, 1800, 3600, 14400, 43200].filter(x => x <= (max ?? 600));
	if (max !== undefined && all.at(-1) !== max && max < 43200) all.push(max);
	return all.slice(-3);
}

/** Asks what would come of a move, again when the output or the question changes. Older sites are asked only why. */
function useWhy(s: Site, p: Point, value: Scalar, seconds: number | undefined, also: unknown): ReadonlySignal<Why | undefined> {
	const why = useSignal<Why | undefined>(undefined);
	useEffect(() => {
		const end = new AbortController();
		let again: ReturnType<typeof setTimeout>;
		const ask = async () => {
			const o = { signal: end.signal };
			if (document.hidden) return document.addEventListener("visibilitychange", ask, { once: true, ...o });
			try {
				const w = await s.conn.tool<Why>("explain_point", { point: p.point, ...value !== undefined ? { value } : {}, ...seconds ? { for_seconds: seconds } : {} }, o)
					.catch(e => { if (e instanceof Fault && e.kind === "invalid") return s.conn.tool<Why>("explain_point", { point: p.point }, o); throw e; });
				why.value = { ...w, came: performance.now() };
				again = setTimeout(ask, 1000 * Math.min(30, Math.max(1, w.refused_seconds ?? 30)));
			} catch {
				again = setTimeout(ask, 5000);
			}
		};
		again = setTimeout(ask, 150);
		return () => { clearTimeout(again); end.abort(); };
	}, [s, p.point, value, seconds, also]);
	return why;
}

/** The card of an output: name, state, value, what ends it, what can be done. It stands in a section, or alone. */
export function OutputCard({ s, p, alone }: { s: Site; p: Point; alone?: boolean }) {
	const refused = useSignal(false), r = s.value(p.point).value, is = kindOf(s, p, r), kind: Kind = is === "safe" && refused.value ? "no" : is;
	const [tone, icon, word, edge] = look[kind], id = useId(), o = r?.output ?? {};
	const away = kind === "held" || kind === "moving" || kind === "wait" || kind === "bad";
	const apart = r && (kind === "wait" || kind === "moving" || kind === "bad" && !!o.set && o.set.value !== o.measured?.value);
	const safeText = worded(p.safe, p.unit);
	return <article class={"card " + edge} aria-labelledby={id} data-output={p.point} data-kind={kind}>
		<div class="head"><h3 id={id} aria-level={alone ? 2 : undefined}><a class="plain" href={href("point", { s: s.name, p: p.point })}><bdi>{s.title(p.point)}</bdi></a></h3>
			<span class="r"><State tone={tone} icon={icon}>{t(word)}</State></span></div>
		<div class="head"><span class="val"><Value v={kind === "unknown" ? undefined : r?.value} unit={p.unit} /></span>
			{r && kind !== "unknown" && !apart && <span class="small soft">{o.measured && <>{t("setAndMeasured")}, </>}<T k="forAge" age={<Age at={r.at} />} /></span>}</div>
		{apart && <dl class="pair">
			<div><dt>{t("setTo")}</dt><dd>{o.set ? <Told a={o.set} r={r!} unit={p.unit} /> : worded(o.going_to ?? (typeof r!.value === "boolean" ? !r!.value : undefined), p.unit)}</dd></div>
			<div><dt>{t("measured")}</dt><dd>{o.measured ? <Told a={o.measured} r={r!} unit={p.unit} /> : worded(r!.value, p.unit)}</dd></div></dl>}
		{away && o.seconds_left !== undefined && <End s={s} r={r!} of={p.point} to={safeText} who={<Holder s={s} of={o.held_by} value={r!.value} />} />}
		{kind === "bad" && <p>{o.fault ? <bdi>{sentence(o.fault)}</bdi> : t("notFollowing")}</p>}
		{kind === "wait" && <p>{t("notConfirmed")}</p>}
		{o.effect && (away || o.effect === "failed") && <p data-effect>{t(`effect.${o.effect}`)}</p>}
		{kind === "unknown" && <p>{r?.why ? <bdi>{r.why}</bdi> : t("noReading")}{r && r.value !== undefined && <> {t("lastKnown", { value: worded(r.value, p.unit) })}</>}</p>}
		{away || kind === "unknown" ? <AwayButtons s={s} p={p} r={r} kind={kind} /> : <SafeButtons s={s} p={p} r={r!} kind={is} refused={refused} />}
	</article>;
}

function Told({ a, r, unit }: { a: Aged; r: Reading; unit?: string }) {
	return <>{worded(a.value, unit)}, <T k="ago" age={<Age at={r.came - 1000 * a.age_seconds} />} /></>;
}

/** What ends it: the bar that drains, or without contact the time of day when that was to end. */
export function End({ s, r, of, to, who }: { s: Site; r: Reading; of: string; to: string; who?: ComponentChild }) {
	const seconds = r.output?.seconds_left ?? 0;
	if (!s.gone.value) return <Lease of={s.name + "\n" + of} name={s.title(of)} r={r} to={to} who={who} />;
	const at = new Date(performance.timeOrigin + r.came + 1000 * seconds);
	return <p class="small lease">{t("endsAt", { to, time: at.toLocaleTimeString(locale, { hourCycle: "h23" }) })}</p>;
}

export const backToSafe = (s: Site, p: Point) => async () => {
	await release(s, p);
	toast(t("sentSafe", { name: s.title(p.point) }));
};

function AwayButtons({ s, p, r, kind }: { s: Site; p: Point; r?: Reading; kind: Kind }) {
	const id = useId(), why = views.find(v => v.name === "why");
	const longer = kind === "held" && r?.output?.seconds_left !== undefined && r.output.held_by === s.you;
	return <>
		<div class="btns fill">
			{kind === "unknown" && <Button why act={() => {}} describedby={id} hook="move">{verb(p)}</Button>}
			<Button class={kind === "unknown" ? "" : "pri"} act={backToSafe(s, p)} hook="safe">{t(kind === "unknown" ? "safeAnyway" : "backToSafe")}</Button>
			{longer && <Button why={s.gone.value > 0} act={() => panel({ title: <T k="longerAsk" name={<bdi>{s.title(p.point)}</bdi>} />, no: t("leaveIt"), body: <Longer s={s} p={p} /> })} hook="longer">{t("longer")}</Button>}
			{!longer && kind === "held" && why && <a class="btn" href={href("why", { s: s.name, p: p.point })}>{t("why")}</a>}
		</div>
		{kind === "unknown" && <p class="small soft" id={id}>{t("unknownMore")}</p>}
	</>;
}

/** Makes a lease longer, by what the limits leave. */
function Longer({ s, p }: { s: Site; p: Point }) {
	const r = s.value(p.point).value, value = r?.value;
	const why = useWhy(s, p, value, p.max_seconds, r?.output?.state);
	const rest = useComputed(() => left(r?.output?.seconds_left, r?.came ?? 0) ?? 0);
	const w = why.value, most = w && left(w.would_hold_seconds ?? p.max_seconds ?? 600, w.came)!, more = most === undefined ? 0 : Math.floor(most - rest.value);
	const renew = (to: number) => async () => {
		panel(undefined);
		await move(s, p, value, to);
		toast(t("longerDone", { name: s.title(p.point), time: length(to) }));
	};
	if (!w) return <p>{t("asking")}</p>;
	if (w.refused || more < 1) return <Note icon="no">{w.refused ? sentence(w.refused) : t("longerNo")}</Note>;
	return <>
		<p><T k="longerMore" left={<b>{clock(rest.value)}</b>} more={<b>{length(more)}</b>} /></p>
		<div class="btns fill">{[60, 300, 1800].filter(x => x < more).map(x => <Button act={renew(rest.value + x)} hook={"more" + x}>{"+ " + length(x)}</Button>)}
			<Button act={renew(most!)} hook="moreall">{t("longerAll", { time: length(more) })}</Button></div>
	</>;
}

/** How long and how far, and the button, of an output that is at safe. What would refuse it stands above. */
function SafeButtons({ s, p, r, kind, refused }: { s: Site; p: Point; r: Reading; kind: Kind; refused: Signal<boolean> }) {
	const id = useId(), times = lengths(p.max_seconds), ids = useId();
	const low = p.min ?? 0, high = p.max ?? 100, step = (high - low) / (high - low > 20 ? Math.ceil((high - low) / 5) : 20);
	const seconds = useSignal(times.includes(60) ? 60 : times[0]!), level = useSignal(low + step * Math.round((high - low) / step / 2));
	const value: Scalar = p.kind === "switch" ? !p.safe : p.values?.length ? p.values.find(v => v !== p.safe) : level.value;
	const why = useWhy(s, p, value, seconds.value, JSON.stringify([kind, r.output?.state, r.output?.needs]));
	const w = why.value, holds = w?.would_hold_seconds, gone = s.gone.value > 0;
	const wait = left(r.output?.rest_seconds, r.came) || (w?.refused ? left(w.refused_seconds, w.came) : undefined);
	let reason: ComponentChild, notYours = w?.refused_kind === "denied";
	if (gone) reason = t("noContactMoves");
	else if (kind === "stopped") reason = t("stopLatched");
	else if (kind === "rest") reason = <T k="rests" time={<b><Countdown seconds={r.output!.rest_seconds!} came={r.came} /></b>} />;
	else if (notYours) reason = t("mayLook");
	else if (w?.refused) reason = <><bdi>{sentence(w.refused)}</bdi>{wait ? <> <T k="inTime" time={<b><Countdown seconds={w.refused_seconds!} came={w.came} /></b>} /></> : null}</>;
	else if (kind === "no") reason = <bdi>{sentence(r.output!.needs!)}</bdi>;
	useEffect(() => { refused.value = !!w?.refused && !notYours; }, [w?.refused, notYours]);
	// Another output that stands in the way can be sent to safe from here.
	const others = w?.refused && !gone ? s.away.value.filter(x => x !== p && w.refused!.split(/[\s"',;:]+/).includes(x.point)) : [];
	const duty = w?.output?.duty, less = holds !== undefined && holds < seconds.value - .5;
	const about = reason ? "" : [p.confirm ? t("asksOwner") : "", less ? t("onlySoLong", { time: length(holds) }) : duty ? t("stillAllowed", { time: length(left(duty.left_seconds, w!.came)!) }) : ""]
		.filter(x => x).join(" ");
	const act = async () => {
		const a = await move(s, p, value, seconds.value);
		if (a.type === "input_required") return panel({ title: t("waitsForOwner"), body: <><p>{t("waitsForOwnerMore")}</p>
			{s.owner.value ? <a class="btn" href="#waiting" onClick={() => panel(undefined)}>{t("waitsForYou")}</a> : <pre>{String(a.meta["agentsite/approval"] ?? "")}</pre>}</> });
		panel(undefined);
		toast(t("sent", { name: s.title(p.point), value: worded(value, p.unit), time: length(a.value?.seconds_left ?? seconds.value), safe: worded(p.safe, p.unit) }));
	};
	const words = { value: worded(value, p.unit), time: length(seconds.value), safe: worded(p.safe, p.unit), name: s.title(p.point) };
	return <>
		{reason ? <p id={id} data-reason>{reason}</p> : about ? <p id={id} data-about>{about}</p> : null}
		{!notYours && kind !== "stopped" && !gone && <>
			{p.kind === "level" && <div class="field"><label class="small soft" for={ids}><T k="setLevel" value={<b>{worded(level.value, p.unit)}</b>} of={worded(high, p.unit)} /></label>
				<input type="range" id={ids} min={low} max={high} step={step} value={level.value} onInput={e => { level.value = e.currentTarget.valueAsNumber; }} /></div>}
			<div class="field"><span class="small soft" id={ids + "t"}>{t("howLong")}</span>
				<Choice labelledby={ids + "t"} of={times.map(x => ({ value: x, text: length(x) }))} chosen={seconds.value} choose={x => { seconds.value = x; }} /></div>
		</>}
		<div class="btns fill">
			{reason ? <Button why act={() => {}} describedby={id} hook="move">{verb(p)}{wait ? <>, <T k="in" time={clock(wait)} /></> : null}</Button>
				: p.confirm ? <Button act={act} describedby={id} hook="move" icon="hand">{t("askTo", { what: verb(p) })}</Button>
				: <Hold act={act} describedby={about ? id : undefined} hook="move" ask={{ title: t("moveAsk", words), more: t("moveAskMore", words), yes: verb(p) }}>
					{t(p.kind === "switch" ? p.safe === true ? "holdOff" : "holdOn" : "holdSet")}</Hold>}
			{others.map(x => <Button act={backToSafe(s, x)} hook="other">{t("otherSafe", { name: s.title(x.point) })}</Button>)}
		</div>
	</>;
}

/** An output at safe, as a row that opens its card. */
export function OutputRow({ s, p }: { s: Site; p: Point }) {
	const r = s.value(p.point).value, kind = kindOf(s, p, r), [tone, icon, word] = look[kind], row = useRef<HTMLButtonElement>(null);
	useFocusLeft(row);
	const sub = kind === "safe" ? p.confirm ? t("asksEachTime") : "" : kind === "no" ? r?.output?.needs : kind === "held" && r?.output?.effect ? t(`effect.${r.output.effect}`) : t(word);
	return <li class="p1"><button ref={row} type="button" class="line" data-output={p.point} data-kind={kind}
		onClick={() => panel({ title: <bdi>{s.name}</bdi>, bare: true, body: <OutputCard s={s} p={p} /> })}>
		<span class="grow"><bdi>{s.title(p.point)}</bdi>{sub && <><br /><span class="small soft"><bdi>{sub}</bdi></span></>}</span>
		<State tone={tone} icon={icon}>{kind === "unknown" ? t("unknown") : worded(r?.value, p.unit)}</State></button></li>;
}

/** Outputs that need their card: those away from safe and those that are not known. */
export const wantsCard = (s: Site, p: Point) => ["held", "moving", "wait", "bad", "unknown"].includes(kindOf(s, p, s.value(p.point).value));

