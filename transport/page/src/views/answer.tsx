// The calls that the key of this browser answers. Each answer is signed by that key.

import { useEffect, useState } from "preact/hooks";
import { kept, signed, told } from "../phone";
import { ended, Fault } from "../rpc";
import { bearer } from "../session";
import type { Site } from "../site";
import { toast } from "../ui";
import { t } from "../words";
import { Failed, useAsk } from "./parts";
import { Requests, type Request } from "./waiting";

const kinds: Record<number, string> = { 403: "denied", 410: "expired", 429: "busy", 503: "unavailable" };

async function failed(r: Response): Promise<Fault> {
	if (r.status === 401) ended.call();
	const m = await r.json().catch(() => undefined);
	return new Fault(kinds[r.status] ?? "internal", String(m?.error?.message ?? "HTTP " + r.status));
}

async function list(signal: AbortSignal): Promise<Request[]> {
	const r = await fetch("/page/calls", { credentials: "omit", cache: "no-store", signal,
		headers: { Authorization: "Bearer " + bearer() } }).catch(() => { throw new Fault("offline", ""); });
	if (!r.ok) throw await failed(r);
	return (await r.json()).requests;
}

/** A tap that was meant for the call which stood there until just now answers nothing. */
const settle = 1000;

/** The calls that wait, which a tap answers. */
export function Answers({ site }: { site: Site }) {
	const { value, fault, again } = useAsk(list, [site], 3); // a site does not tell by itself what waits for others
	const shown = value?.map(r => r.handle).join() ?? "", [settled, set] = useState("");
	useEffect(() => {
		const timer = setTimeout(() => set(shown), settle);
		return () => clearTimeout(timer);
	}, [shown]);
	const answer = async (handle: string, as: "deny" | "approve") => {
		try {
			const key = await kept((await told()).site, "key");
			if (!key) throw new Fault("denied", "");
			const r = await signed(key, "/page/answer", `${as} ${handle}`);
			if (!r.ok) throw await failed(r);
			toast(t(as === "deny" ? "waiting.denied" : "waiting.allowed"));
		} finally {
			again();
		}
	};
	return <><Failed of={fault} again={again} /><Requests site={site} of={value} done={again} answer={answer}
		wait={settled !== shown} /></>;
}
