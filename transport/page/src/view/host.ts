// The host of the view: JSON-RPC by messages to the window above, as MCP Apps of 2026-01-26 have it.

export interface Result { content?: { type?: string; text?: string }[]; structuredContent?: unknown; isError?: boolean }

export interface Context {
	theme?: unknown; styles?: { variables?: Record<string, unknown> }; containerDimensions?: { maxHeight?: number; height?: number };
}

/** What the view does with what the host says. */
export interface View {
	input(args: Record<string, unknown>): void;
	result(r: Result): void;
	cancelled(): void;
	context(c: Context): void;
	end(): void;
}

/** Without an answer for so long, a call is over: in milliseconds. */
export const patience = 15_000;

const waiting = new Map<number, { done: (r: any) => void; failed: (e: Error) => void }>();
let last = 0, begun = false;

const send = (m: object) => window.parent.postMessage({ jsonrpc: "2.0", ...m }, "*");

export const notify = (method: string, params: object = {}) => send({ method, params });

function ask(method: string, params: object): Promise<any> {
	const id = ++last;
	return new Promise<any>((done, failed) => {
		const timer = setTimeout(() => { waiting.delete(id); failed(new Error("")); }, patience);
		const over = <T>(then: (v: T) => void) => (v: T) => { clearTimeout(timer); waiting.delete(id); then(v); };
		waiting.set(id, { done: over(done), failed: over(failed) });
		send({ id, method, params });
	});
}

/** Calls a tool of the site by the host. What failed has the site's words, and nothing where no answer came. */
export async function call(name: string, args: object): Promise<unknown> {
	const r: Result = await ask("tools/call", { name, arguments: args });
	if (r?.isError || !r?.structuredContent) throw new Error(textOf(r) || "?");
	return r.structuredContent;
}

/** The text of a result. */
export const textOf = (r: Result | undefined) => Array.isArray(r?.content) ? r.content.map(c => typeof c?.text === "string" ? c.text : "").join("\n").slice(0, 2000) : "";

/** Begins with the host, and says whether it lets the view call tools. */
export async function begin(v: View): Promise<boolean> {
	window.addEventListener("message", e => {
		const m = e.data;
		if (e.source !== window.parent || m?.jsonrpc !== "2.0") return;
		if (typeof m.method !== "string") {
			const w = waiting.get(m.id);
			if (m.error) w?.failed(new Error(String(m.error.message ?? "?").slice(0, 500)));
			else w?.done(m.result);
		} else if (m.id !== undefined) {
			if (m.method === "ui/resource-teardown") v.end();
			send(m.method === "ui/resource-teardown" || m.method === "ping" ? { id: m.id, result: {} }
				: { id: m.id, error: { code: -32601, message: "Method not found" } });
		} else if (begun) {
			const p = m.params ?? {};
			switch (m.method) {
			case "ui/notifications/tool-input": return v.input(p.arguments ?? {});
			case "ui/notifications/tool-result": return v.result(p);
			case "ui/notifications/tool-cancelled": return v.cancelled();
			case "ui/notifications/host-context-changed": return v.context(p);
			}
		}
	});
	const r = await ask("ui/initialize", { protocolVersion: "2026-01-26", appInfo: { name: "agentsite", version: "1" }, appCapabilities: {} });
	begun = true;
	v.context(r?.hostContext ?? {});
	notify("ui/notifications/initialized");
	return !!r?.hostCapabilities?.serverTools;
}
