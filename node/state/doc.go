// Package state is a site's data folder: where each file is, who may read it, which
// process holds the folder, and how a file is replaced without ever being half written.
// It keeps the token, the key and the number of the last announced record itself and opens
// the access store; of the journal, the claim and the plan it knows only the files' names.
//
// It may import node/identity, for the key, node/access, and device/guard, for the files of
// the emergency stop's latch.
package state
