// Elements without a framework. What a site says is only ever text of a node.

type Child = Node | string | false | undefined;
type Props = Record<string, string | boolean | undefined | ((e: any) => void)>;

const vector = document.querySelector("svg")!.namespaceURI;

function fill<E extends Element>(e: E, props: Props, children: Child[]): E {
	for (const [name, v] of Object.entries(props)) {
		if (typeof v === "function") e.addEventListener(name, v);
		else if (v !== undefined && v !== false) e.setAttribute(name, v === true ? "" : v);
	}
	e.append(...children.filter(c => c !== undefined && c !== false) as (Node | string)[]);
	return e;
}

/** An element. A property that is a function listens to the event of its name. */
export const el = (tag: string, props: Props = {}, ...children: Child[]): HTMLElement => fill(document.createElement(tag), props, children);

/** An element of a drawing. */
export const draw = (tag: string, props: Props = {}, ...children: Child[]): SVGElement =>
	fill(document.createElementNS(vector, tag) as SVGElement, props, children);

/** A text of the site, whose direction ends with it. */
export const said = (s: unknown) => el("bdi", {}, typeof s === "string" ? s.slice(0, 300) : "–");
