// What can stand at a place of the configuration's text, by its JSON Schema.

export interface Schema {
	$ref?: string; description?: string; type?: string | string[]; properties?: Record<string, Schema>; items?: Schema;
	additionalProperties?: Schema | boolean; enum?: unknown[]; const?: unknown; pattern?: string; required?: string[];
	anyOf?: Schema[]; oneOf?: Schema[]; allOf?: Schema[]; if?: Schema; then?: Schema; not?: unknown;
}

/** Where the cursor is: in a map or list, at a key, or at the value of one. from is where the word begins. */
export interface Place { node: Node; key?: string; word: string; from: number }

/** A map or list of the text. has is what is written in it, values that are scalars as text. */
interface Node { up?: Node; key: string; list?: boolean; has: Map<string, string> }

const map = (key: string, up?: Node, list?: boolean): Node => ({ up, key, list, has: new Map() });

/** Finds the place of a cursor in YAML, of which it reads blocks and flows, and no anchors and no folded texts. It
 *  returns nothing in a comment. */
export function place(text: string, at: number): Place | undefined {
	const block = [{ indent: -1, node: map("") }], flow: Node[] = [];
	let key: string | undefined, found: Place | undefined, start = 0;
	for (const line of text.split("\n")) {
		const cursor = at - start, here = cursor >= 0 && cursor <= line.length;
		const blank = !line.trim() || line.trim().startsWith("#");
		let i = line.length - line.trimStart().length, inner = block.at(-1)!.node, from = i;
		if (!flow.length && (!blank || here)) {
			const column = blank ? cursor : i;
			while (block.at(-1)!.indent >= column) block.pop();
			inner = block.at(-1)!.node;
			for (let item; !blank && (item = /^-( +|$)/.exec(line.slice(i))); i += item[0].length) {
				inner.list = true;
				block.push({ indent: i, node: inner = map("-", inner) });
			}
			const m = blank ? undefined : /^("?)([\w.:/-]+)\1:( |$)/.exec(line.slice(i));
			from = here ? Math.min(i, cursor) : i;
			if (here && cursor <= i + (m?.[2]!.length ?? 0)) {
				found = { node: inner, word: line.slice(from, cursor), from: start + from };
			}
			key = m?.[2];
			if (m) {
				inner.has.set(key!, line.slice(i + m[0].length).trim());
				block.push({ indent: i, node: map(key!, inner) });
				from = i += m[0].length;
			}
		}
		for (; !blank && i <= line.length; i++) {
			const c = line[i], top = flow.at(-1), node = top ?? inner;
			while (from < i && line[from] === " ") from++;
			if (here && i === cursor) found ??= { node, key, word: line.slice(from, i), from: start + from };
			if (c === undefined || c === "#" && (line[i - 1] ?? " ") === " ") break;
			if (c === '"' || c === "'") {
				const close = line.indexOf(c, i + 1);
				if (close > 0 && (cursor <= i || cursor > close)) i = close;
			} else if (c === "{" || c === "[") {
				if (top && key !== undefined) top.has.set(key, "");
				const its = !top && key !== undefined ? block.at(-1)!.node : map(key ?? "-", node);
				its.list = c === "[";
				flow.push(its);
				key = undefined;
				from = i + 1;
			} else if (top && c === ":" && !top.list && key === undefined && (line[i + 1] ?? " ") === " ") {
				key = line.slice(from, i).trim();
				top.has.set(key, "");
				from = i + 1;
			} else if (top && (c === "," || c === "}" || c === "]")) {
				if (key !== undefined && from < i) top.has.set(key, line.slice(from, i).trim());
				key = undefined;
				from = i + 1;
				if (c !== ",") flow.pop();
			}
		}
		if (here && !found) return;
		start += line.length + 1;
	}
	return found;
}

/** The schemas that hold for a map, of what is written in it. */
function expand(root: Schema, all: (Schema | undefined)[], has: Map<string, string>, depth = 0): Schema[] {
	return depth > 8 ? [] : all.flatMap(s => {
		if (!s || typeof s !== "object") return [];
		const more = [s.$ref ? pointed(root, s.$ref) : undefined, ...s.anyOf ?? [], ...s.oneOf ?? [], ...(s.allOf ?? [])
			.map(x => !x.if || holds(x.if, has) ? x.then ?? x : undefined), s.if && holds(s.if, has) ? s.then : undefined];
		return [s, ...expand(root, more, has, depth + 1)];
	});
}

const pointed = (root: Schema, ref: string): Schema | undefined => ref.replace(/^#\//, "").split("/")
	.reduce<any>((at, k) => at && Object.hasOwn(at, k) ? at[k] : undefined, root);

function holds(s: Schema, has: Map<string, string>): boolean {
	return (s.required ?? []).every(k => has.has(k)) && Object.entries(s.properties ?? {}).every(([k, v]) => {
		const is = has.get(k)?.replace(/ #.*$/, "").replace(/^(["'])(.*)\1$/, "$2");
		return is === undefined || (v.const === undefined || v.const === is) && (!v.enum || v.enum.includes(is))
			&& (!v.pattern || matches(v.pattern, is));
	});
}

function matches(pattern: string, text: string): boolean {
	try {
		return new RegExp(pattern).test(text);
	} catch {
		return false;
	}
}

const under = (s: Schema[], key: string): Schema[] => s.flatMap(x => {
	const own = x.properties && Object.hasOwn(x.properties, key) ? x.properties[key] : undefined;
	const other = key === "-" ? x.items : own ? undefined : x.additionalProperties;
	return [own, other].filter((y): y is Schema => !!y && typeof y === "object");
});

function at(root: Schema, node: Node): Schema[] {
	return node.up ? expand(root, under(at(root, node.up), node.key), node.has) : expand(root, [root], node.has);
}

export interface Option { text: string; says?: string; key?: boolean }

/** What can stand at a place, of what begins as the word does. */
export function options(root: Schema, p: Place, most = 40): Option[] {
	const all = new Map<string, Option>(), here = at(root, p.node);
	const add = (v: unknown) => all.set(String(v), { text: String(v) });
	if (p.key !== undefined || p.node.list) {
		for (const s of expand(root, under(here, p.key ?? "-"), p.node.has)) {
			for (const v of [...s.enum ?? [], ...s.const !== undefined ? [s.const] : [], ...s.type === "boolean" ? [true, false]
				: []]) if (["string", "number", "boolean"].includes(typeof v)) add(v);
		}
	} else for (const s of here) {
		if (!p.node.has.size) s.enum?.forEach(add);
		for (const [k, v] of Object.entries(s.properties ?? {})) {
			if (p.node.has.has(k) && k !== p.word) continue;
			const says = expand(root, [v], new Map()).find(x => x.description)?.description;
			if (!all.has(k)) all.set(k, { text: k, says, key: true });
		}
	}
	return [...all.values()].filter(o => o.text.startsWith(p.word)).slice(0, most);
}
