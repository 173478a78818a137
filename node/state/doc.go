// Package state manages a site's data folder: the paths and modes of its files, the lock of the
// process that uses it, and atomic replacement. It stores the token, the key and the number of the
// last announced record, and opens the access store. For the journal, the claim and the plan it has
// only the file names.
//
// It may import node/identity, for the key, node/access, and device/guard, for the files of
// the emergency stop's latch.
package state
