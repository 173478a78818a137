// Package tools renders the operations on a site as tools for models, and its points as resources.
// Names, descriptions, schemas, decoding and results are the same for every agents.Site. There is a
// tool for each operation, with an enum of points. So the number of tools depends on the kinds
// wired up and not on the number of devices.
//
// A schema names what its principal may name, and nothing else. The site decides what a call may
// do.
package tools
