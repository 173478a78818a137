// The chain of a journal, hashed here, and its entries, read from the bytes that were hashed.

/** A page of the journal as a site answers it. */
export interface Page { first: number; last: number; hash?: string; chain?: { after: string; entries: string[] } }

/** An entry of the chain by its number and its hash, in base64. */
export interface Link { seq: number; hash: string }

/** An entry as it is hashed, and its hash in base64. */
export interface Raw {
	hash: string; seq: number; at: number; kind: string; who?: string; tool?: string; args?: string; key?: string;
	of?: number; fault?: string; value?: string; says?: string; count?: number; via?: string[];
}

/** Where a chain is broken: between two entries, and how. */
export class Broken extends Error {
	constructor(readonly how: "none" | "unread" | "place" | "changed" | "cut" | "noted", readonly from: number,
		readonly to = from) { super(how); }
}

/** The last entries of a journal that were hashed here, most at most: a whole chain from the one after before to
 *  head. */
export class Chain {
	entries: Raw[] = [];
	before?: Link;
	head?: Link;
	/** The number that the chain was hashed from, without a gap. Entries after it may have been dropped. */
	reached = Infinity;
	first = 0;
	/** The entries that have to be in it, by their numbers. */
	private readonly marks = new Map<number, string>();

	constructor(noted?: Link) { if (noted) this.marks.set(noted.seq, noted.hash); }

	/** Takes the newest page. What it does not reach of before is forgotten, but not its last hash. */
	async newest(p: Page): Promise<void> {
		const end = { seq: count(p.last), hash: String(p.hash) }, known = Math.max(0, ...this.marks.keys());
		if (end.seq < known) throw new Broken("cut", end.seq, known);
		this.first = count(p.first);
		if (!end.seq) return;
		const got = await hashed(p.chain, end, this.marks), had = this.head;
		if (had && got.before.seq <= had.seq) {
			this.entries = [...this.entries, ...got.entries.filter(e => e.seq > had.seq)];
			if (had.seq !== end.seq) this.marks.delete(had.seq);
			const dropped = this.entries.length - most;
			if (dropped > 0) {
				const { seq, hash } = this.entries[dropped - 1]!;
				this.before = { seq, hash };
				this.entries = this.entries.slice(dropped);
			}
		} else {
			this.entries = got.entries;
			this.before = got.before;
			this.reached = got.before.seq;
		}
		this.head = end;
		this.marks.set(end.seq, end.hash);
	}

	/** Takes the page before. */
	async older(p: Page): Promise<void> {
		this.first = count(p.first);
		if (!this.more) return;
		const got = await hashed(p.chain, this.before!, this.marks);
		this.entries = [...got.entries, ...this.entries];
		this.before = got.before;
		this.reached = Math.min(this.reached, got.before.seq);
	}

	/** Whether the site keeps older entries than these. */
	get more(): boolean { return !!this.before && this.before.seq > 0 && this.before.seq >= this.first; }
}

function count(n: unknown): number {
	if (!Number.isSafeInteger(n) || (n as number) < 0) throw new Broken("none", 0);
	return n as number;
}

/** The most entries of a page. Who answers with more keeps the page busy. */
export const many = 1000;
/** How many entries are kept. */
export const most = 5000;

/** Hashes entries of which the last has to be end. */
async function hashed(c: Page["chain"], end: Link, marks: Map<number, string>): Promise<{ before: Link;
	entries: Raw[] }> {
	const n = Array.isArray(c?.entries) ? c.entries.length : 0, entries: Raw[] = [];
	let seq = end.seq - n, at = bytes(c?.after ?? "", seq), other = 0;
	if (!n || n > many || seq < 0 || at.length !== 32) throw new Broken("none", end.seq);
	const first = base64(at), before = { seq, hash: first };
	const check = () => { if ((marks.get(seq) ?? base64(at)) !== base64(at)) other ||= seq; };
	if (!seq && at.some(x => x)) throw new Broken("changed", 1);
	check();
	for (const text of c!.entries) {
		const b = bytes(text, ++seq), both = new Uint8Array(32 + b.length);
		both.set(at);
		both.set(b, 32);
		at = new Uint8Array(await crypto.subtle.digest("SHA-256", both));
		const e = read(b, seq);
		if (e.seq !== seq) throw new Broken("place", seq);
		entries.push({ ...e, hash: base64(at) });
		check();
	}
	if (base64(at) !== end.hash) throw new Broken("changed", before.seq + 1, end.seq);
	if (other) throw new Broken("noted", other);
	return { before, entries };
}

const base64 = (b: Uint8Array) => btoa(String.fromCharCode(...b));

function bytes(text: unknown, seq: number): Uint8Array<ArrayBuffer> {
	try {
		return Uint8Array.from(atob(String(text)), c => c.charCodeAt(0));
	} catch {
		throw new Broken("unread", seq);
	}
}

const members = ["", "seq", "at", "kind", "who", "tool", "args", "digest", "key", "of", "fault", "value", "says",
	"count", "via"];
const strict = { fatal: true, ignoreBOM: true };

/** Reads an entry in CBOR: a map from small numbers to numbers, texts, bytes and lists of texts. */
function read(b: Uint8Array, seq: number): Omit<Raw, "hash"> {
	let i = 0;
	const head = (): [number, number] => {
		const x = b[i++] ?? NaN, low = x & 31, size = low < 24 ? 0 : low < 28 ? 2 ** (low - 24) : NaN;
		let n = size ? 0 : low;
		for (let k = 0; k < size; k++) n = n * 256 + (b[i++] ?? NaN);
		if (i > b.length || !(size >= 0 && Number.isSafeInteger(n))) throw new Broken("unread", seq);
		return [x >> 5, n];
	};
	const text = (n: number) => {
		if (i + n > b.length) throw new Broken("unread", seq);
		return new TextDecoder("utf-8", strict).decode(b.subarray(i, i += n));
	};
	const value = (name?: string): unknown => {
		const [major, n] = head();
		if (major < 2) return major ? -1 - n : n;
		if (major === 3) return text(n);
		if (major === 2) return name === "digest" ? void (i += n) : text(n);
		if (major !== 4 || name !== "via" || n > b.length) throw new Broken("unread", seq);
		return Array.from({ length: n }, () => value());
	};
	try {
		const out: Record<string, unknown> = {}, [major, n] = head();
		if (major !== 5 || n >= members.length) throw 0;
		for (let k = 0; k < n; k++) {
			const [of, name] = head(), member = of ? undefined : members[name];
			if (!member || member in out) throw 0;
			out[member] = value(member);
		}
		const number = (k: string) => out[k] === undefined || typeof out[k] === "number";
		const texts = ["who", "tool", "args", "key", "fault", "value", "says"].map(k => out[k]);
		if (i !== b.length || typeof out.kind !== "string" || typeof out.seq !== "number" || typeof out.at !== "number"
			|| Math.abs(out.at) > 8.64e15 || !number("of") || !number("count")
			|| texts.concat(out.via).some(x => x !== undefined && typeof x !== "string")) throw 0;
		return out as unknown as Raw;
	} catch {
		throw new Broken("unread", seq);
	}
}
