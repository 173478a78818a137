// Package state is a site's data folder: where each file is, who may read it, which
// process holds the folder, and how a file is replaced without ever being half written.
// It keeps the token, the key and the number of the last announced record itself; of the
// access store, the journal, the claim and the plan it knows only the names of the files.
//
// It may import node/identity, for the key, and device/guard, for the files of the
// emergency stop's latch.
package state
