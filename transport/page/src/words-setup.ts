// The words of the views that set up a site, which are loaded with them.

import { lang, texts } from "./words";

const en = {
	"found": "Found", "looking": "Looking for connected parts …", "none": "No new part was found that has a driver.",
	"other": "Another part", "find": "Driver or part, such as relay or bme280", "take": "Choose",
	"nothing": "No driver has that name.", "part": "The part", "name": "Name of the device", "needed": "always needed",
	"usual": "when not written: {value}", "more": "More keys", "see": "See the change", "change": "The change",
	"write": "Write it", "well": "Go back where a device does not answer afterwards",
	"mistakes": "Mistakes", "line": "line {n}", "warnings": "Warnings", "wired": "Wiring of {entry}",
	"text": "The configuration’s text", "right": "The site would take it.", "same": "Nothing is changed.",
	"conflict": "Somebody changed the configuration meanwhile. Nothing of yours is written.",
	"keep": "Go on with my text", "drop": "Take the text as it is now", "again": "Choose another part",
	"added": "{name} is added.", "checking": "Checking …",
};

const de: Record<keyof typeof en, string> = {
	"found": "Gefunden", "looking": "Angeschlossene Teile werden gesucht …",
	"none": "Kein neues Teil mit einem Treiber wurde gefunden.",
	"other": "Ein anderes Teil", "find": "Treiber oder Teil, etwa relay oder bme280", "take": "Wählen",
	"nothing": "Kein Treiber heißt so.", "part": "Das Teil", "name": "Name des Geräts", "needed": "immer nötig",
	"usual": "sonst: {value}", "more": "Weitere Schlüssel", "see": "Änderung ansehen", "change": "Die Änderung",
	"write": "Schreiben", "well": "Zurück, wenn danach ein Gerät nicht antwortet",
	"mistakes": "Fehler", "line": "Zeile {n}", "warnings": "Warnungen", "wired": "Anschluss von {entry}",
	"text": "Text der Konfiguration", "right": "Die Anlage nähme sie an.", "same": "Nichts ist geändert.",
	"conflict": "Jemand hat die Konfiguration inzwischen geändert. Von dir ist nichts geschrieben.",
	"keep": "Mit meinem Text weiter", "drop": "Den jetzigen Text nehmen", "again": "Anderes Teil wählen",
	"added": "{name} ist hinzugefügt.", "checking": "Wird geprüft …",
};

export const s = texts<keyof typeof en>(lang === "de" ? de : en);
