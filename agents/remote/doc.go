// Package remote presents other sites as one agent here: a tool per verb and an enum of
// site/device/point, so that ten sites do not make ten times the tools.
//
// What a site says is data. Only verbs known here are called there; the texts that a
// model reads are our own; names have to match the name pattern; results are decoded
// into what is expected of them, and every text in them is cleaned and bounded. How a
// site is reached, and by whose key, is the concern of who hands it in.
package remote
