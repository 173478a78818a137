// The words of the view.

import { lang, texts } from "../format";

const en = {
	on: "on", off: "off", safe: "Safe", away: "Away from safe", moving: "On its way to {value}", left: "left, then {safe}", leftSafe: "left, then back to safe", heldBy: "Held by {who}",
	local: "somebody at the site's own machine", token: "a program on the site's machine",
	backToSafe: "Back to safe", backToSafeOf: "{name} back to safe", asking: "Asking…", lost: "No answer. Go and look, or ask for the state of the site.",
	now: "Last", unknown: "Unknown", maybeOld: "These values may be old: the last question got no answer.", mean: "Mean", lowest: "Lowest", highest: "Highest", nothing: "No good readings in this time.", tooLarge: "These values cannot be drawn.",
	chart: "{name}, {from} to {to}: lowest {low}, mean {mean}, highest {high}. Arrow keys read the steps.", table: "As a table", time: "Time", value: "Value", point: "Point", age: "Age",
	fault: "fault", stale: "old", changes: "Last changes", notMoved: "A move would be refused", because: "Back at safe", notAnswered: "No answer from {site}",
	running: "Running", stopped: "Emergency stop", stoppedMore: "Nothing moves until an owner ends the stop: agentsite reset.", stop: "Emergency stop",
	stopAgain: "Press again: stop everything", stopOf: "{a} of {b} outputs are safe.", awayNone: "Every output is at safe.", faults: "Faults", none: "No faults", simulated: "simulated",
	cancelled: "The call was cancelled.", failed: "The site refused", waits: "The site answers", notShown: "There is nothing to show of this.", noHost: "No answer from the program that shows this.",
};

const de: typeof en = {
	on: "an", off: "aus", safe: "Sicher", away: "Nicht in sicherer Stellung", moving: "Unterwegs zu {value}", left: "noch, dann {safe}", leftSafe: "noch, dann zurück in sichere Stellung", heldBy: "Gehalten von {who}",
	local: "jemandem am Rechner der Anlage", token: "einem Programm auf dem Rechner der Anlage",
	backToSafe: "Zurück in sichere Stellung", backToSafeOf: "{name} zurück in sichere Stellung", asking: "Frage…", lost: "Keine Antwort. Sieh nach, oder frage nach dem Zustand der Anlage.",
	now: "Zuletzt", unknown: "Unbekannt", maybeOld: "Diese Werte sind vielleicht alt: Die letzte Frage blieb ohne Antwort.", mean: "Mittel", lowest: "Kleinster", highest: "Größter", nothing: "Keine guten Messwerte in dieser Zeit.", tooLarge: "Diese Werte lassen sich nicht zeichnen.",
	chart: "{name}, {from} bis {to}: kleinster {low}, Mittel {mean}, größter {high}. Pfeiltasten lesen die Schritte.", table: "Als Tabelle", time: "Zeit", value: "Wert", point: "Punkt", age: "Alter",
	fault: "Fehler", stale: "alt", changes: "Letzte Änderungen", notMoved: "Ein Schalten würde abgelehnt", because: "Zurück in sicherer Stellung", notAnswered: "Keine Antwort von {site}",
	running: "In Betrieb", stopped: "Not-Stopp", stoppedMore: "Nichts bewegt sich, bis ein Besitzer den Stopp beendet: agentsite reset.", stop: "Not-Stopp",
	stopAgain: "Nochmal drücken: alles stoppen", stopOf: "{a} von {b} Ausgängen sind sicher.", awayNone: "Alle Ausgänge sind in sicherer Stellung.", faults: "Fehler", none: "Keine Fehler", simulated: "simuliert",
	cancelled: "Der Aufruf wurde abgebrochen.", failed: "Die Anlage hat abgelehnt", waits: "Die Anlage antwortet", notShown: "Davon gibt es nichts zu zeigen.", noHost: "Das Programm, das dies zeigt, antwortet nicht.",
};

export const t = texts<keyof typeof en>(lang === "de" ? de : en);
