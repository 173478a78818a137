// The parts that views are made of.

import { signal, useComputed, useSignal, useSignalEffect, type ReadonlySignal } from "@preact/signals";
import type { ComponentChild, ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon, type IconName } from "./icons";
import { quantity } from "./quantity";
import { Fault } from "./rpc";
import { left, named, now, type Point, type Reading, type Scalar } from "./site";
import { age, clock, has, number, t, T } from "./words";

export { Icon, type IconName } from "./icons";
export { beside, quantity, scale } from "./quantity";
export { deviceOf, named, short } from "./site";

/** The tones of what is said: safe has no colour. */
export type Tone = "safe" | "away" | "bad" | "unk" | "ok" | "acc" | "";

/** A name that somebody gave: isolated, so that its direction ends with it. */
export const Name = ({ of }: { of: string }) => <bdi>{named(of)}</bdi>;

/** A state: shape and word, and a colour besides. */
export const State = ({ tone, icon, children }: { tone: Tone; icon: IconName; children: ComponentChildren }) =>
	<span class={"st " + tone} data-state={icon}><Icon n={icon} />{children}</span>;

/** A sentence that matters where it stands. */
export const Note = ({ tone = "", icon, id, children }: { tone?: Tone; icon: IconName; id?: string; children: ComponentChildren }) =>
	<div class={"note " + tone} id={id}><Icon n={icon} /><div class="grow">{children}</div></div>;

/** A section with its title, and the number of what is in it. */
export function Section({ title, n, end, children }: { title: ComponentChild; n?: number; end?: ComponentChild; children: ComponentChildren }) {
	const id = useId();
	return <section class="sec" aria-labelledby={id}>
		<div class="head"><h2 id={id}>{title}</h2>{n !== undefined && <span class="soft">{number(n)}</span>}{end && <span class="r">{end}</span>}</div>
		{children}
	</section>;
}

/** What a fault says to people: the kind in words, and the site's own sentence. */
export function says(e: unknown): string {
	if (!(e instanceof Fault)) return t("fault.internal");
	const key = "fault." + e.kind, first = has(key) ? t(key) : t("fault.internal");
	return ["out", "missing"].includes(e.kind) || !e.message ? first : first + " " + sentence(e.message);
}

/** What a site says as a sentence; an address at its beginning stays as it is. */
export const sentence = (s: string) => (/^\S*\//.test(s) ? s : s.slice(0, 1).toUpperCase() + s.slice(1)) + (/[.!?]$/.test(s) ? "" : ".");

// Values.

/** A value in words: on, 45 %, –. */
export function worded(v: Scalar, unit?: string): string {
	if (v === undefined || v === null) return "–";
	if (typeof v === "boolean") return t(v ? "on" : "off");
	if (typeof v === "number") return quantity(v, unit).filter(x => x).join(" ");
	return v;
}

/** A value in its place: a missing one is a dash, never 0. */
export function Value({ v, unit }: { v: Scalar; unit?: string }) {
	if (typeof v === "number") {
		const [n, u] = quantity(v, unit);
		return <>{n}{u && <small> {u}</small>}</>;
	}
	return <>{typeof v === "string" ? <bdi>{v}</bdi> : worded(v)}</>;
}

/** How old something is, which goes on. */
export function Age({ at }: { at: number }) {
	const text = useComputed(() => age(Math.max(0, (now.value - at) / 1000)));
	return <span class="nw">{text}</span>;
}

/** What is wrong with a reading: nothing where it is good. */
export function Quality({ r }: { r?: Reading }) {
	if (!r || r.quality === "good") return null;
	if (r.quality === "stale") return <State tone="unk" icon="old"><T k="ageOld" age={<Age at={r.at} />} /></State>;
	return <State tone="bad" icon="bad">{r.quality === "fault" ? t("faulty") : r.quality}</State>;
}

/** A length that counts down from when it was told. */
export function Countdown({ seconds, came }: { seconds: number; came: number }) {
	const text = useComputed(() => clock(left(seconds, came) ?? 0));
	return <span class="nw" data-left>{text}</span>;
}

const totals = new Map<string, { state?: number; came: number; total: number }>();

/** The lease of an output as a bar that drains: what is left, then where it goes by itself. */
export function Lease({ of, name, r, to, who, total }: { of: string; name: string; r: Reading; to: string; who?: ComponentChild; total?: number }) {
	const seconds = r.output?.seconds_left ?? 0;
	// The whole length is the longest that was seen of this lease.
	const known = totals.get(of);
	if (!known || seconds > known.total || known.state !== r.output?.state) totals.set(of, { state: r.output?.state, came: r.came, total: total ?? seconds });
	const whole = Math.max(1, totals.get(of)!.total);
	const part = useComputed(() => Math.min(1, (left(seconds, r.came) ?? 0) / whole));
	const last = useRef(0);
	useSignalEffect(() => {
		const s = left(r.output?.seconds_left, r.came) ?? 0;
		if ([60, 10].some(at => last.current > at && s <= at)) spoken.value = `${name}: ${clock(s)} ${t("leftThen", { to })}`;
		last.current = s;
	});
	return <div class="lease" data-lease={of}>
		<div class="b" aria-hidden="true"><Bar part={part} /></div>
		<div class="x"><span><b><Countdown seconds={seconds} came={r.came} /></b> {t("leftThen", { to })}</span>{who && <span class="soft">{who}</span>}</div>
	</div>;
}

function Bar({ part }: { part: ReadonlySignal<number> }) {
	return <i style={{ transform: `scaleX(${part.value.toFixed(4)})` }} />;
}

// Buttons.

/** Gives the focus to the view when what has it goes away, or the keyboard would begin at the top again. */
export function useFocusLeft(of: { current: HTMLElement | null }): void {
	useLayoutEffect(() => () => {
		if (!of.current || document.activeElement !== of.current) return;
		setTimeout(() => { if (document.activeElement === document.body) document.getElementById("main")?.focus({ preventScroll: true }); });
	}, []);
}

/** A button that is grey where why says what stands against it: it can be focused and read, and does nothing. */
export function Button({ why, describedby, act, class: kind = "", icon, hook, children, label }: {
	why?: boolean; describedby?: string; act: () => unknown; class?: string; icon?: IconName; hook?: string; children: ComponentChildren; label?: string;
}) {
	const busy = useSignal(false), button = useRef<HTMLButtonElement>(null);
	useFocusLeft(button);
	const press = async () => {
		if (why || busy.value) return;
		busy.value = true;
		try {
			await act();
		} catch (e) {
			toast(says(e), true);
		} finally {
			busy.value = false;
		}
	};
	return <button ref={button} type="button" class={"btn " + kind} onClick={press} aria-disabled={why || undefined} aria-describedby={describedby} aria-busy={busy.value || undefined}
		aria-label={label} data-act={hook}>{icon && <Icon n={icon} />}<span>{children}</span></button>;
}

/** A button that acts after it was held for a second. By keyboard it asks in words. */
export function Hold({ why, describedby, act, ask, hook, children }: {
	why?: boolean; describedby?: string; act: () => unknown; ask: { title: string; more?: string; yes: string }; hook?: string; children: ComponentChildren;
}) {
	const on = useSignal(false), busy = useSignal(false);
	const held = useRef<{ timer: ReturnType<typeof setTimeout>; x: number; y: number } | undefined>(undefined);
	const button = useRef<HTMLButtonElement>(null);
	useFocusLeft(button);
	const cancel = () => {
		if (held.current) clearTimeout(held.current.timer);
		held.current = undefined;
		on.value = false;
	};
	const run = async () => {
		if (busy.value) return;
		busy.value = true;
		try {
			await act();
		} catch (e) {
			toast(says(e), true);
		} finally {
			busy.value = false;
		}
	};
	const inWords = () => panel({ title: ask.title, body: <p>{ask.more}</p>, yes: ask.yes, act: run });
	// A hold ends with the focus of the window, a scroll, or another finger.
	useEffect(() => {
		const ends = ["blur", "scroll"] as const, finger = (e: PointerEvent) => { if (!e.isPrimary) cancel(); };
		const over = (e: Event) => { if (e.type !== "blur" || e.target === window) cancel(); }; // elements blur as well
		for (const e of ends) addEventListener(e, over, true);
		addEventListener("pointerdown", finger, true);
		return () => {
			cancel();
			for (const e of ends) removeEventListener(e, over, true);
			removeEventListener("pointerdown", finger, true);
		};
	}, []);
	return <button ref={button} type="button" class={"btn hold" + (on.value ? " on" : "")} aria-disabled={why || undefined} aria-describedby={describedby}
		aria-busy={busy.value || undefined} data-act={hook} data-hold
		onPointerDown={e => {
			cancel();
			if (why || busy.value || !e.isPrimary || e.button !== 0) return;
			on.value = true;
			held.current = { x: e.clientX, y: e.clientY, timer: setTimeout(() => { cancel(); navigator.vibrate?.(30); void run(); }, 1000) };
		}}
		onPointerMove={e => { const h = held.current; if (h && Math.hypot(e.clientX - h.x, e.clientY - h.y) > 12) cancel(); }}
		onPointerUp={cancel} onPointerCancel={cancel} onPointerLeave={cancel} onContextMenu={e => e.preventDefault()}
		onClick={e => { if (!why && e.detail === 0) inWords(); }}>
		<i class="f" /><svg class="ring" viewBox="0 0 38 38" aria-hidden="true"><circle class="t" cx="19" cy="19" r="15.9" /><circle class="g" cx="19" cy="19" r="15.9" /></svg>
		<span>{children}</span>
	</button>;
}

/** One of a few, side by side. */
export function Choice<V>({ of, chosen, choose, label, labelledby, class: kind = "" }: {
	of: { value: V; text: string }[]; chosen: V; choose: (v: V) => void; label?: string; labelledby?: string; class?: string;
}) {
	return <div class={"seg " + kind} role="group" aria-label={label} aria-labelledby={labelledby}>
		{of.map(x => <button type="button" aria-pressed={x.value === chosen} onClick={() => choose(x.value)}>{x.text}</button>)}
	</div>;
}

// What lies over the view: a panel below the bar, which leaves the stop alive, and a toast.

export interface Panel { title: ComponentChild; body?: ComponentChild; yes?: string; act?: () => unknown; no?: string; bare?: boolean }

export const opened = signal<Panel | undefined>(undefined);
let before: Element | null = null;

/** Opens a panel, or closes it with undefined. */
export function panel(p: Panel | undefined): void {
	if (p && !opened.value) before = document.activeElement;
	opened.value = p;
}

export function PanelHost() {
	const p = opened.value, id = useId(), box = useRef<HTMLDivElement>(null);
	// At once: a key that comes before the focus would be for what was there.
	useLayoutEffect(() => {
		if (p) box.current?.querySelector<HTMLElement>("[data-first]")?.focus({ preventScroll: true });
		else if (before instanceof HTMLElement) (before.isConnected ? before : document.getElementById("main"))?.focus({ preventScroll: true });
		if (!p) before = null;
	}, [p]);
	if (!p) return null;
	return <>
		<div class="veil" onClick={() => panel(undefined)} />
		<div class="panel" role="dialog" aria-labelledby={id} ref={box} data-panel>
			<div class="stack3">
				<h2 id={id} class={p.bare ? "cap" : ""}>{p.title}</h2>
				{p.body}
				<div class="btns fill">
					<button type="button" class="btn" data-first data-act="no" onClick={() => panel(undefined)}>{p.no ?? t(p.yes ? "cancel" : "close")}</button>
					{p.yes && <Button class="pri" hook="yes" act={() => { panel(undefined); return p.act?.(); }}>{p.yes}</Button>}
				</div>
			</div>
		</div>
	</>;
}

const said = signal<{ text: string; bad: boolean } | undefined>(undefined);
let saidTimer: ReturnType<typeof setTimeout>;

/** Says what was done, for five seconds; what failed, until it is closed. */
export function toast(text: string, bad = false): void {
	clearTimeout(saidTimer);
	said.value = { text, bad };
	if (!bad) saidTimer = setTimeout(() => { said.value = undefined; }, 5000);
}

/** Says something to screen readers alone. */
export const spoken = signal("");

export function ToastHost() {
	const s = said.value;
	return <>
		<div class="sr" role="status">{s && !s.bad ? s.text : spoken}</div>
		<div class="sr" role="alert">{s?.bad ? s.text : ""}</div>
		{s && <div class={"toast" + (s.bad ? " bad" : "")} data-toast aria-hidden={s.bad ? undefined : "true"}>
			{s.bad && <Icon n="bad" />}<span class="grow">{s.text}</span>
			{s.bad && <button type="button" class="btn bare" onClick={() => { said.value = undefined; }}>{t("close")}</button>}
		</div>}
	</>;
}

/** Still blocks while something is asked for. */
export function Loading({ name }: { name: string }) {
	const from = useRef(performance.now());
	const text = useComputed(() => number(Math.max(0, now.value - from.current) / 1000));
	return <div class="card" aria-busy="true"><div class="sk w4" /><div class="sk w7" /><div class="sk w5" />
		<span class="small soft">{t("loading", { name })} <span class="nw">{text} s</span></span></div>;
}

export type { Point };
