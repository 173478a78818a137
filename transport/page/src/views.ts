// The views, in the order of the navigation.

import type { ComponentType } from "preact";
import type { Site } from "./site";
import type { IconName } from "./icons";
import { access } from "./views/access";
import { board } from "./views/board";
import { house } from "./views/house";
import { journal } from "./views/journal";
import { point } from "./views/point";
import { rules } from "./views/rules";
import { add, claim, edit } from "./views/setup";
import { site } from "./views/site";
import { talk } from "./views/talk";
import { tasks } from "./views/tasks";
import { waiting } from "./views/waiting";
import { why } from "./views/why";

export type Query = URLSearchParams;

export interface View {
	/** In the fragment: #name?s=SITE. */
	name: string;
	title(q: Query): string;
	icon: IconName;
	/** The word in the navigation; a view without one is reached from others. */
	nav?: () => string;
	/** The number beside it, of what waits there; 0 for none. */
	badge?: () => number;
	/** Shown only where the owner's methods answer at a site. */
	owner?: boolean;
	/** The site that it is about: the stop reaches that alone. */
	scope?(q: Query): Site | undefined;
	/** Where "back" leads, on a phone. */
	back?(q: Query): string;
	Show: ComponentType<{ q: Query }>;
}

export const views: View[] = [
	house,
	site,
	point,
	waiting, talk, rules, tasks, journal, access, board, why, add, edit, claim,
];
