// JSON-RPC to a site: MCP 2026-07-28 and the owner's methods, by POST.

/** A call that failed. kind is the word of the wire protocol, or: out (not signed in), missing (no such
 *  method for this caller). */
export class Fault extends Error {
	constructor(readonly kind: string, says: string, readonly retryAfter?: number) {
		super(says);
	}
}

const kinds: Record<number, string> = {
	[-32602]: "invalid", 403: "denied", 409: "unsafe", 429: "busy", 502: "offline", 410: "expired", 504: "unknown_outcome",
	503: "unavailable", [-32603]: "internal", [-32601]: "missing", 401: "out", 404: "missing",
};

export interface Notification { method: string; params?: any }
export interface Options { name?: string; signal?: AbortSignal; timeout?: number; meta?: object; on?: (n: Notification) => void }

/** What a tool answered: its structured result, its content, and its result type. */
export interface Answer<T> { value: T; content: any[]; type: string; meta: any; requestState?: string }

/** Whether a proxy shows this page below a path of its own, knows its user by a cookie, and says who calls. Its other
 *  pages reach what is stored here: no token and no key is. */
export const behind = !/^\/(page\/index\.html)?$/.test(location.pathname);
export const credentials: RequestCredentials = behind ? "same-origin" : "omit";

const version = "2026-07-28";
let running = new AbortController();

/** Ends all requests of this tab: a browser opens six connections to a host, and the stop needs one. */
export function abortAll() {
	running.abort();
	running = new AbortController();
}

/** What is called when a site says that the session is over. */
export const ended = { call: () => {} };

export class Conn {
	private id = 0;
	constructor(readonly url: string, private readonly token: () => string) {}

	/** Calls a method. Without an answer in timeout milliseconds (10,000; 0: any time) it fails. */
	async call<T>(method: string, params: object = {}, o: Options = {}): Promise<T> {
		const limit = o.timeout ?? 10_000;
		const signals = [running.signal, ...o.signal ? [o.signal] : [], ...limit ? [AbortSignal.timeout(limit)] : []];
		return this.send(method, params, AbortSignal.any(signals), o, o.on);
	}

	/** Calls a tool. */
	async ask<T>(name: string, args: object = {}, o: Options = {}): Promise<Answer<T>> {
		const r = await this.call<any>("tools/call", { name, arguments: args }, { ...o, name });
		if (r?.isError) {
			const text = String(r.content?.[0]?.text ?? "");
			const kind = String(r._meta?.["agentsite/fault"] ?? "internal");
			throw new Fault(kind, text.startsWith(kind + ": ") ? text.slice(kind.length + 2) : text, r._meta?.["agentsite/retry-after"]);
		}
		return { value: r.structuredContent, content: r.content ?? [], type: r.resultType, meta: r._meta ?? {}, requestState: r.requestState };
	}

	/** Calls a tool and returns its structured result. */
	async tool<T>(name: string, args: object = {}, o: Options = {}): Promise<T> {
		return (await this.ask<T>(name, args, o)).value;
	}

	/** Subscribes, until the stream ends or fails. heard is called for every sign of life. */
	async listen(params: object, on: (n: Notification) => void, signal: AbortSignal, heard = () => {}): Promise<void> {
		await this.send("subscriptions/listen", params, AbortSignal.any([signal, running.signal]), { meta: { "agentsite/values": 0.5 } }, on, heard);
	}

	private async send(method: string, params: object, signal: AbortSignal, o: Options,
		on: (n: Notification) => void = () => {}, heard = () => {}): Promise<any> {
		const id = ++this.id;
		const owners = !/^(tools|resources|prompts|subscriptions|server|tasks|completion)\//.test(method);
		const meta = {
			"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {},
			"agentsite/text": "none", ...o.meta,
		};
		const body = JSON.stringify({ jsonrpc: "2.0", id, method, params: owners ? params : { ...params, _meta: meta } });
		let r: Response;
		try {
			r = await fetch(this.url, {
				method: "POST", body, signal, cache: "no-store", credentials, redirect: "error",
				headers: {
					"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + this.token(),
					"Mcp-Protocol-Version": version, "Mcp-Method": method, ...o.name ? { "Mcp-Name": o.name } : {},
				},
			});
		} catch (e) {
			throw unanswered(e);
		}
		if (r.status === 401) {
			ended.call();
			throw new Fault("out", "not signed in");
		}
		try {
			if (r.headers.get("Content-Type")?.startsWith("text/event-stream")) {
				for await (const m of events(r.body!, heard)) {
					if (m.id === id) return result(m);
					if (typeof m.method === "string") on(m);
				}
				throw new Fault("offline", "");
			}
			const m = await r.json().catch(() => undefined);
			if (!m?.result && !m?.error) throw new Fault(kinds[r.status] ?? "internal", "HTTP " + r.status);
			return result(m);
		} catch (e) {
			throw unanswered(e);
		}
	}
}

/** Of what the browser says nothing is for people. */
function unanswered(e: unknown): Fault {
	return e instanceof Fault ? e : new Fault("offline", "");
}

function result(m: any): any {
	if (!m.error) return m.result;
	const kind = kinds[m.error.code] ?? "internal";
	const says = String(m.error.message ?? "");
	throw new Fault(kind, says.startsWith(kind + ": ") ? says.slice(kind.length + 2) : says);
}

const longest = 1 << 22; // characters of one event

/** The messages of a stream of server-sent events. */
async function* events(body: ReadableStream<Uint8Array>, heard: () => void): AsyncGenerator<any> {
	const reader = body.pipeThrough(new TextDecoderStream() as any).getReader();
	let rest = "";
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) return;
			heard();
			rest += value;
			const blocks = rest.split(/\r?\n\r?\n/);
			rest = blocks.pop()!;
			if (rest.length > longest) throw new Fault("internal", "an event is too long");
			for (const b of blocks) {
				const data = b.split(/\r?\n/).filter(l => l.startsWith("data:")).map(l => l.slice(5)).join("\n");
				if (data) yield JSON.parse(data);
			}
		}
	} finally {
		reader.cancel().catch(() => {});
	}
}

/** Lets so many do something at a time, in the order in which they came. */
export function turns(free: number): <T>(what: () => Promise<T>) => Promise<T> {
	const waiting: (() => void)[] = [];
	return async what => {
		if (free) free--;
		else await new Promise<void>(go => waiting.push(go));
		try {
			return await what();
		} finally {
			const next = waiting.shift();
			if (next) next();
			else free++;
		}
	};
}
