// The words of the page: one table for each language, of the same keys.

import type { ComponentChild } from "preact";
import { form, lang, locale, texts, timeOf } from "./format";
import { de } from "./words-de";
import { en } from "./words-en";
import { viewsDe, viewsEn } from "./words-views";

export { age, clock, lang, length, locale, number, texts, timeOf } from "./format";

const english = { ...en, ...viewsEn };
export type Key = keyof typeof english;
const tables: Record<string, Record<Key, string>> = { en: english, de: { ...de, ...viewsDe } };
const table = tables[lang]!;

/** The text of a key, as texts says. */
export const t = texts<Key>(table);

/** The same with nodes for the arguments. */
export function T({ k, ...args }: { k: Key; [arg: string]: ComponentChild }): ComponentChild {
	return form(table[k] ?? k, args.n).split(/\{(\w+)\}/).map((x, i) => i % 2 ? args[x] : x);
}

/** Whether a key has a text; for keys that are made of what sites say. */
export const has = (key: string): key is Key => Object.hasOwn(table, key);

/** Day and time of a moment, of another day than today with its date. */
export function dayTime(d: Date): string {
	const same = d.toDateString() === new Date().toDateString();
	return same ? timeOf(d) : d.toLocaleDateString(locale, { day: "numeric", month: "short" }) + ", " + timeOf(d);
}
